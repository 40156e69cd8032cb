-- note: notes writes that Postgres has refused as stale, for people who look. No lock depends on it.
--
-- KEYS  refusals
-- ARGV  entries  most  keep
-- REPLY integer: how many are noted now; 0 if the list is not one of this package
-- USES  shared/refusal.lua
--
-- `entries`: one on each line. `most`: how many are kept, for `keep` milliseconds after the last one. The time in front
-- of an entry is that of this server, because the clocks of the processes may differ.

local last = redis.call('LINDEX', KEYS[1], -1)
if last and not is_refusal(last) then return 0 end
local now = redis.call('TIME')
local at = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
for entry in string.gmatch(ARGV[1], '[^\n]+') do
  redis.call('RPUSH', KEYS[1], at .. ' ' .. entry)
end
for _ = ARGV[2] + 1, math.min(redis.call('LLEN', KEYS[1]), ARGV[2] + MOST_REMOVED) do
  redis.call('LPOP', KEYS[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('LLEN', KEYS[1])
