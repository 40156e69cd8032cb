-- transfer: transfers a lease to a successor, with its full time, if this holder still has it.
--
-- KEYS  lease
-- ARGV  holder  successor  leaseTime  wake  pubsub  name
-- REPLY integer: 1 transferred; 0 gone, or another holder has the key
-- USES  shared/lease.lua shared/wake.lua
--
-- A lease that the successor already has counts as transferred, which makes the script safe to repeat after a lost
-- reply. The message tells the old holder's process, whose callers would otherwise wait for its next renewal.

local holder = holder_of(KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
extend(KEYS[1], ARGV[2], ARGV[3], ARGV[6])
wake_up(ARGV[5], ARGV[4], 'look')
return 1
