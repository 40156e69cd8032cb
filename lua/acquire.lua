-- acquire: takes the lease if the key is free and no other process is first in the queue, or if this holder already has
-- it. Otherwise enters the queue, if `enter` is set.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  receiver  enter  wake  offerTime  pubsub  name
-- REPLY list: 0 taken; otherwise the milliseconds that the present holder's lease still has, at least 1;
--       -1 if that key never expires, which no lease of ours does; then, where it was not taken, that holder and the name
--       of its process, '' if there is none; where it was, how many wait for it
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/pass-on.lua
--
-- `enter`: for how long a place in the queue is wanted; 0 for none. `receiver`: whose channel tells that it is alive.
-- `name`: what others are told of the process that has the key or waits for it.
-- "Already mine" makes it safe to send again after a lost reply (clients resend by themselves after a reconnect), and
-- is how an offer is confirmed. A key that lost its holder has no message to wake the first in the queue, so whoever
-- looks makes the offer.
--
-- Without offers, any process with a place in the queue may take a free key. A process without a place and without
-- `enter` lets them go first: otherwise a process that releases a key and takes it again would always come before the
-- processes that the release has woken.

local own = place_of(ARGV[1], ARGV[3], ARGV[8], ARGV[6])
local enter = tonumber(ARGV[4])
local holder, time, name = holder_of(KEYS[1])
local is_free = false
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  local behind = ARGV[6] == '0' and enter == 0 and redis.call('LLEN', KEYS[2]) > 0
  is_free = (first == nil or first == own) and not behind
end
if is_free then
  -- First, because a server whose memory is full refuses a script whose first write may need memory.
  if ARGV[6] == '0' and may_search(KEYS[2]) then redis.call('LREM', KEYS[2], 1, own) end
  put(KEYS[1], ARGV[1], ARGV[2], ARGV[8])
  return { 0, redis.call('LLEN', KEYS[2]) }
end
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[8], time, name)
  return { 0, redis.call('LLEN', KEYS[2]) }
end
if enter > 0 and may_search(KEYS[2]) then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
holder, time, name = holder_of(KEYS[1])
if holder == false then return { 1, '', '' } end
return { time_left(KEYS[1], time), holder, name }
