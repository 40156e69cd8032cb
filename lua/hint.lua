-- hint: tells the first process in the queue that the COMMIT of this holder has been sent.
--
-- KEYS  lease  queue
-- ARGV  holder  attempt  wake  pubsub
-- REPLY integer: 1 sent; 0 nobody waits, or the holder does not have the key any more
-- USES  shared/lease.lua shared/place.lua shared/wake.lua
--
-- `attempt`: the id of the holder's transaction in Postgres, by which the next process finds out whether it comes right
-- behind it. A hint keeps no place and gives no right, so it may be lost, late or wrong.

if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
local first = redis.call('LINDEX', KEYS[2], 0)
local next = first and parts_of(first)
if not next then return 0 end
wake_up(ARGV[4], ARGV[3], 'next ' .. next .. ' ' .. ARGV[1] .. ' ' .. ARGV[2])
return 1
