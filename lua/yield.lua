-- yield: passes the key on if another process waits for it, and gives the lease its full time again if none does.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  wake  offerTime  pubsub  name
-- REPLY integer: 1 kept; 0 passed on, or it was not this holder's any more
-- USES  shared/lease.lua shared/wake.lua shared/pass-on.lua
--
-- Where no offers are made it passes to whoever takes it first. All who wait look then, and take their places again.

local holder, time, name = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then return 0 end
local waited_for = ARGV[4] == '0' and redis.call('LLEN', KEYS[2]) > 0
if holder and not waited_for then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[6], time, name)
  return 1
end
redis.call('DEL', KEYS[1], KEYS[2])
wake_up(ARGV[5], ARGV[3], 'look')
return 0
