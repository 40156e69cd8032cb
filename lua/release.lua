-- release: gives back what this holder has, a lease or a place in the queue, and passes the key on.
--
-- KEYS  lease  queue
-- ARGV  holder  receiver  wake  offerTime  pubsub
-- REPLY integer: 1 released; 0 it had no lease
-- USES  shared/lease.lua shared/wake.lua shared/pass-on.lua
--
-- One script for both, because a waiter that gives up may just have been made an offer. A message is a hint that it is
-- worth looking: whoever misses it looks when the lease would have ended. LREM comes first also because a server whose
-- memory is full refuses a script whose first write may need some: a key that cannot be given back would stand still.

redis.call('LREM', KEYS[2], 1, ARGV[1] .. ' ' .. ARGV[2])
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  redis.call('DEL', KEYS[1])
  wake_up(ARGV[5], ARGV[3], 'look')
end
return holder and 1 or 0
