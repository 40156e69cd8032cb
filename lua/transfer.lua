-- transfer: puts a lease into the name of a successor, with its full time, if it is still this holder's.
--
-- KEYS  lease
-- ARGV  holder  successor  leaseTime
-- REPLY integer: 1 transferred; 0 gone, or somebody else's
-- USES  shared/lease.lua
--
-- "Already the successor's" makes it safe to send again after a lost reply.

local holder = holder_of(KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
extend(KEYS[1], ARGV[2], ARGV[3])
return 1
