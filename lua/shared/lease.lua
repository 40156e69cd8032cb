-- lease: who has a key, the name of that process, and the time that the lease was taken for, all in its value:
-- `<holder> <name> <ms>`, or `<holder> <ms>` without a name, as an offer is. The name may have spaces inside.
--
-- The name stands in the middle, because versions that know of none read everything before the last space as the holder:
-- that is nobody whom they know, and the time is the right one.
--
-- Redis computes the expiry with the wall clock of its machine. If that is set back, a lease lasts so much longer, and
-- an abandoned lease would block the key. So every script that reads a lease shortens it to the time that it was taken
-- for: the holder has counted its own time from an earlier moment.

-- More bytes than a lease or an entry of the queue of this package has. A longer value is of other software. It is neither
-- read to its end nor parsed, because no other client is served meanwhile.
local LONGEST = 1024

-- The patterns take linear time.
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end

local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end

-- PEXPIRE comes first, because a server whose memory is full refuses a script whose first write may need memory.
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
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
