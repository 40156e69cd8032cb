-- inspect: who has a key, for how long yet, and how many processes wait for it.
--
-- KEYS  lease  queue
-- ARGV
-- REPLY list: the holder, '' for none; milliseconds that its lease still has; entries of the queue
-- USES  shared/lease.lua

local holder = holder_of(KEYS[1])
return { holder or '', redis.call('PTTL', KEYS[1]), redis.call('LLEN', KEYS[2]) }
