-- acquire: takes the lease if the key is free and nobody waits before this holder, or if it is already this holder's;
-- otherwise takes a place in the queue, where that was asked for.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  receiver  enter  wake  offerTime  pubsub  name
-- REPLY list: 0 taken; otherwise the milliseconds that the present holder's lease still has, at least 1;
--       -1 if that key never expires, which no lease of ours does; then, where it was not taken, that holder and the name
--       of its process, '' if there is none; where it was, how many wait for it
-- USES  shared/lease.lua shared/wake.lua shared/pass-on.lua
--
-- `enter`: for how long a place in the queue is wanted; 0 for none. `receiver`: whose channel tells that it is alive.
-- `name`: what others are told of the process that has the key.
-- "Already mine" makes it safe to send again after a lost reply (clients resend by themselves after a reconnect), and
-- is how an offer is confirmed. A key that lost its holder has no message to wake the first in the queue, so whoever
-- looks makes the offer.
--
-- Where no offers are made all who have a place may take a free key. Who has none, and asks for none, lets them go
-- first: otherwise one that gives a key back and asks for it again would always be before those whom that has woken.

local own = ARGV[1] .. ' ' .. ARGV[3]
local enter = tonumber(ARGV[4])
local holder, time, name = holder_of(KEYS[1])
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  local behind = ARGV[6] == '0' and enter == 0 and redis.call('LLEN', KEYS[2]) > 0
  if (first == nil or first == own) and not behind then
    put(KEYS[1], ARGV[1], ARGV[2], ARGV[8])
    if ARGV[6] == '0' then redis.call('LREM', KEYS[2], 1, own) end
    return { 0, redis.call('LLEN', KEYS[2]) }
  end
end
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[8], time, name)
  return { 0, redis.call('LLEN', KEYS[2]) }
end
if enter > 0 then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
holder, time, name = holder_of(KEYS[1])
if holder == false then return { 1, '', '' } end
return { time_left(KEYS[1], time), holder, name }
