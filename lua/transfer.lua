-- transfer: puts a lease into the name of a successor, with its full time, if it is still this holder's.
--
-- KEYS  lease
-- ARGV  holder  successor  leaseTime
-- REPLY integer: 1 transferred; 0 gone, or somebody else's
--
-- "Already the successor's" makes it safe to send again after a lost reply. PEXPIRE before SET, because a server whose
-- memory is full refuses a script whose first write may need some.

local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
