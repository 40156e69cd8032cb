-- lease: who has a key, the name of that process, and the time that the lease was taken for, all in its value:
-- `<holder> <name> <ms>`, or `<holder> <ms>` without a name, as an offer is. The name may have spaces inside.
--
-- The name stands in the middle, because versions that know of none read everything before the last space as the holder:
-- that is nobody whom they know, and the time is the right one.
--
-- Redis counts what is left of a lease by the wall clock of its machine. When that is set back, a lease stands for so
-- much longer, and one that nobody will extend any more would keep the key for all of it. No lease stands for longer
-- than it was taken for, so whoever looks cuts it to that: its holder has counted its own time from before that look.

local function holder_of(lease)
  local value = redis.call('GET', lease)
  if value == false then return false end
  local holder, name, time = string.match(value, '^(%S+) ?(.-) (%d+)$')
  return holder or value, time, name or ''
end

local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end

-- PEXPIRE comes first because a server whose memory is full refuses a script whose first write may need some.
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end

-- At least 1; -1 if it never ends, which no lease of ours does.
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
