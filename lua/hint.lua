-- hint: tells the first process in the queue that this holder is about to commit.
--
-- KEYS  lease  queue
-- ARGV  holder  wake  pubsub
-- REPLY integer: 1 it was told; 0 nobody waits, or this holder does not have the key any more
-- USES  shared/lease.lua shared/place.lua shared/wake.lua
--
-- That process opens its transaction, whose admission waits in Postgres for the end of this one. A hint keeps no place and
-- gives no right, so it may be lost, late or wrong.

if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
local first = redis.call('LINDEX', KEYS[2], 0)
local next = first and parts_of(first)
if not next then return 0 end
wake_up(ARGV[3], ARGV[2], 'next ' .. next)
return 1
