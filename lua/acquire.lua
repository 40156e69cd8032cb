-- acquire: takes the lease if the key is free or already this holder's.
--
-- KEYS  lease
-- ARGV  holder  leaseTime
-- REPLY integer: 0 taken; otherwise the milliseconds that the present holder's lease still has, at least 1;
--       -1 if that key never expires, which no lease of ours does
--
-- "Already mine" makes it safe to send again after a lost reply (clients resend by themselves after a reconnect).

local holder = redis.call('GET', KEYS[1])
if holder == false or holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return -1 end
return math.max(1, left)
