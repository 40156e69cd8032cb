-- extend: gives a lease its full time again, if it is still this holder's.
--
-- KEYS  lease  queue
-- ARGV  holder  leaseTime  wake  offerTime  pubsub  name
-- REPLY integer: 1 extended; 0 gone, or somebody else's
-- USES  shared/lease.lua shared/wake.lua shared/pass-on.lua
--
-- Where nobody has it (a restart, a flush) those who wait do not know, and would sleep to the end of the lost lease.

local holder, time, name = holder_of(KEYS[1])
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[6], time, name)
  return 1
end
if holder == false and not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  wake_up(ARGV[5], ARGV[3], 'look')
end
return 0
