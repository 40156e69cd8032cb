-- lease: the value of a lease is `<holder> <ms>`: its holder, and the time that it was taken for.
--
-- Redis computes the expiry with the wall clock of its machine. If that is set back, a lease lasts so much longer, and
-- an abandoned lease would block the key. So every script that reads a lease shortens it to the time that it was taken
-- for: the holder has counted its own time from an earlier moment.

local function holder_of(lease)
  local value = redis.call('GET', lease)
  if value == false then return false end
  local holder, time = string.match(value, '^(.*) (%d+)$')
  return holder or value, time
end

local function put(lease, holder, time)
  redis.call('SET', lease, holder .. ' ' .. time, 'PX', time)
end

-- PEXPIRE comes first, because a server whose memory is full refuses a script whose first write may need memory.
local function extend(lease, holder, time, time_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before then put(lease, holder, time) end
end

-- Milliseconds, at least 1; -1 if the value never expires (no lease of this package does).
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
