-- inspect: the holder of a key, the time until its lease expires, and which processes wait.
--
-- KEYS  lease  queue
-- ARGV  names
-- REPLY list: the holder, '' for none; milliseconds that its lease still has; entries of the queue; the number of the
--       name in Redis that has a value of another type, which is none of ours, 0 for none; the name of the holder's
--       process; the names of the waiting processes, the first of the queue first, '' for one without a name
-- USES  shared/lease.lua shared/place.lua shared/alien.lua
--
-- `names`: how many of the waiting processes are named. Without the right to read them, none: a lock needs no names.

local alien = is_alien('GET', KEYS[1]) and 1 or is_alien('LLEN', KEYS[2]) and 2 or 0
local holder, name, left, waiting, _ = '', '', 0, 0
local names = {}
if alien ~= 1 then
  holder, _, name = holder_of(KEYS[1])
  left = redis.call('PTTL', KEYS[1])
  if alien == 0 then waiting = redis.call('LLEN', KEYS[2]) end
end
if waiting > 0 and tonumber(ARGV[1]) > 0 then
  for at, place in ipairs(redis.pcall('LRANGE', KEYS[2], 0, ARGV[1] - 1)) do
    local _, _, waiter = parts_of(place)
    names[at] = waiter or ''
  end
end
return { holder or '', left, waiting, alien, name or '', names }
