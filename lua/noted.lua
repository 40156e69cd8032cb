-- noted: the entries that `note` has kept, the oldest first.
--
-- KEYS  refusals
-- ARGV
-- REPLY list: the time of this server in milliseconds, as a text; the entries, `<time> <text>`

local now = redis.call('TIME')
return { string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)), redis.call('LRANGE', KEYS[1], 0, -1) }
