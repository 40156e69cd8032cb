-- lease: who has a key, and the time that it was taken for, both in its value: `<holder> <ms>`.
--
-- Redis counts what is left of a lease by the wall clock of its machine. When that is set back, a lease stands for so
-- much longer, and one that nobody will extend any more would keep the key for all of it. No lease stands for longer
-- than it was taken for, so whoever looks cuts it to that: its holder has counted its own time from before that look.

local function holder_of(lease)
  local value = redis.call('GET', lease)
  if value == false then return false end
  local holder, time = string.match(value, '^(.*) (%d+)$')
  return holder or value, time
end

local function put(lease, holder, time)
  redis.call('SET', lease, holder .. ' ' .. time, 'PX', time)
end

-- PEXPIRE comes first because a server whose memory is full refuses a script whose first write may need some.
local function extend(lease, holder, time, time_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before then put(lease, holder, time) end
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
