-- yield: passes the key on if another process waits. Otherwise extends the lease to its full time.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  wake  offerTime  pubsub  name
-- REPLY integer: 1 kept; 0 passed on, or the holder did not have it any more
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/pass-on.lua
--
-- Without offers, the first process that looks takes the key. The queue is deleted: all waiting processes look now, and
-- enter it again.

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
