-- extend: extends a lease to its full time, if this holder still has it.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  wake  offerTime  pubsub  name
-- REPLY integer: 1 extended; 0 gone, or another holder has the key
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/pass-on.lua
--
-- If nobody has the lease (after a restart or a flush), the waiting processes do not know it and would sleep until the
-- time of the lost lease. So the script passes the key on.

local holder, time, name = holder_of(KEYS[1])
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[6], time, name)
  return 1
end
if holder == false and not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  wake_up(ARGV[5], ARGV[3], 'look')
end
return 0
