-- inspect: who has a key, for how long yet, and how many processes wait for it.
--
-- KEYS  lease  queue
-- ARGV
-- REPLY list: the holder, '' for none; milliseconds that its lease still has; entries of the queue; the number of the
--       name in Redis that has a value of another type, which is none of ours, 0 for none; the name of the holder's process
-- USES  shared/lease.lua shared/alien.lua

local alien = is_alien('GET', KEYS[1]) and 1 or is_alien('LLEN', KEYS[2]) and 2 or 0
local holder, name, left, waiting, _ = '', '', 0, 0
if alien ~= 1 then
  holder, _, name = holder_of(KEYS[1])
  left = redis.call('PTTL', KEYS[1])
  if alien == 0 then waiting = redis.call('LLEN', KEYS[2]) end
end
return { holder or '', left, waiting, alien, name or '' }
