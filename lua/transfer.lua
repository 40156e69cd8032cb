-- transfer: puts a lease into the name of a successor, with its full time, if it is still this holder's.
--
-- KEYS  lease
-- ARGV  holder  successor  leaseTime  wake  pubsub  name
-- REPLY integer: 1 transferred; 0 gone, or somebody else's
-- USES  shared/lease.lua shared/wake.lua
--
-- "Already the successor's" makes it safe to send again after a lost reply. The old holder's process hears of it: callers
-- that wait behind it there would wait for its next renewal otherwise, which finds the lease gone.

local holder = holder_of(KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
extend(KEYS[1], ARGV[2], ARGV[3], ARGV[6])
wake_up(ARGV[5], ARGV[4], 'look')
return 1
