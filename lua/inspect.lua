-- inspect: the holder of a key, the time until its lease expires, and which processes wait.
--
-- KEYS  lease  queue
-- ARGV  names
-- REPLY list: the holder, '' for none; milliseconds that its lease still has; entries of the queue; the number of the
--       name in Redis that has a value of other software, 0 for none; the name of the holder's
--       process; the names of the waiting processes, the first of the queue first, '' for one without a name
-- USES  shared/lease.lua shared/place.lua shared/alien.lua
--
-- `names`: how many of the waiting processes are named. Without the right to read them, none: a lock needs no names.
-- They are read one by one, because other software may have written longer entries.

local alien = is_alien_lease(KEYS[1]) and 1 or is_alien_queue(KEYS[2]) and 2 or 0
local holder, name, left, waiting, _ = '', '', 0, 0
local names = {}
if alien ~= 1 then
  holder, _, name = holder_of(KEYS[1])
  left = redis.call('PTTL', KEYS[1])
  if alien == 0 then waiting = redis.call('LLEN', KEYS[2]) end
end
for at = 1, math.min(waiting, tonumber(ARGV[1])) do
  local place = redis.pcall('LRANGE', KEYS[2], at - 1, at - 1)[1]
  if not place then break end
  local _, _, waiter = parts_of(place)
  names[at] = waiter or ''
  if #place > LONGEST then break end
end
return { holder or '', left, waiting, alien, name or '', names }
