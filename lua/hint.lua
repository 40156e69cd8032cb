-- hint: tells the first who waits that this holder is about to give the key back.
--
-- KEYS  lease  queue
-- ARGV  holder  wake  pubsub
-- REPLY integer: 1 told; 0 nobody waits, or it is not this holder's any more
-- USES  shared/lease.lua shared/wake.lua
--
-- A hint and nothing more: it keeps no place and gives no right, so it need not be heard, and may be wrong.

if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
local first = redis.call('LINDEX', KEYS[2], 0)
if not first then return 0 end
wake_up(ARGV[3], ARGV[2], 'next ' .. string.match(first, '^%S+'))
return 1
