-- transfer: transfers a lease to a successor, with its full time, if this holder still has it.
--
-- KEYS  lease
-- ARGV  holder  successor  leaseTime  name
-- REPLY integer: 1 transferred; 0 gone, or another holder has the key
-- USES  shared/lease.lua
--
-- A lease that the successor already has counts as transferred, which makes the script safe to repeat after a lost
-- reply.

local holder = holder_of(KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
extend(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
return 1
