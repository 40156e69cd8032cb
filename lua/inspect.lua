-- inspect: the holder of a key, the time until its lease expires, and how many processes wait.
--
-- KEYS  lease  queue
-- ARGV
-- REPLY list: the holder, '' for none; milliseconds until the lease expires; number of queue entries; the index of the
--       name that has a value of another type, 0 for none
-- USES  shared/lease.lua shared/alien.lua

local alien = is_alien('GET', KEYS[1]) and 1 or is_alien('LLEN', KEYS[2]) and 2 or 0
local holder, left, waiting = '', 0, 0
if alien ~= 1 then
  holder, left = holder_of(KEYS[1]) or '', redis.call('PTTL', KEYS[1])
  if alien == 0 then waiting = redis.call('LLEN', KEYS[2]) end
end
return { holder, left, waiting, alien }
