-- release: releases this holder's lease, removes its place in the queue, and passes the key on.
--
-- KEYS  lease  queue
-- ARGV  holder  receiver  wake  offerTime  pubsub  name
-- REPLY integer: 1 released; 0 it had no lease
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/pass-on.lua
--
-- One script does both, because a process that gives up waiting may just have got an offer. The message is only a hint:
-- a process that misses it looks when the lease would have expired. LREM comes first, because a server whose memory is
-- full refuses a script whose first write may need memory, and then no key could be released.

if may_search(KEYS[2]) then redis.call('LREM', KEYS[2], 1, place_of(ARGV[1], ARGV[2], ARGV[6], ARGV[4])) end
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  redis.call('DEL', KEYS[1])
  wake_up(ARGV[5], ARGV[3], 'look')
end
return holder and 1 or 0
