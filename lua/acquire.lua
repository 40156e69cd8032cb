-- acquire: takes the lease if the key is free and nobody waits before this holder, or if it is already this holder's;
-- otherwise takes a place in the queue, where that was asked for.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  receiver  enter  wake  offerTime  pubsub
-- REPLY integer: 0 taken; otherwise the milliseconds that the present holder's lease still has, at least 1;
--       -1 if that key never expires, which no lease of ours does
-- USES  shared/wake.lua  shared/pass-on.lua
--
-- `enter`: for how long a place in the queue is wanted; 0 for none. `receiver`: whose channel tells that it is alive.
-- "Already mine" makes it safe to send again after a lost reply (clients resend by themselves after a reconnect), and
-- is how an offer is confirmed. A key that lost its holder has no message to wake the first in the queue, so whoever
-- looks makes the offer.

local own = ARGV[1] .. ' ' .. ARGV[3]
local holder = redis.call('GET', KEYS[1])
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  if first == nil or first == own then holder = ARGV[1] end
end
if holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
local enter = tonumber(ARGV[4])
if enter > 0 then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return -1 end
return math.max(1, left)
