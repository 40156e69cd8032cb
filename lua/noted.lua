-- noted: the entries that `note` has kept, the oldest first.
--
-- KEYS  refusals
-- ARGV  most
-- REPLY list: the time of this server in milliseconds, as a text; the entries, `<time> <text>`
-- USES  shared/refusal.lua
--
-- `most`: how many are read, one by one, because other software may have written longer ones.

local entries = {}
for at = 1, tonumber(ARGV[1]) do
  local entry = redis.call('LRANGE', KEYS[1], -at, -at)[1]
  if not entry or #entry > LONGEST_REFUSAL then break end
  table.insert(entries, 1, entry)
end
local now = redis.call('TIME')
return { string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)), entries }
