-- inspect: who has a key, for how long yet, and how many processes wait for it.
--
-- KEYS  lease  queue
-- ARGV
-- REPLY list: the holder, '' for none; milliseconds that its lease still has; entries of the queue

return { redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]), redis.call('LLEN', KEYS[2]) }
