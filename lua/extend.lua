-- extend: gives a lease its full time again, if it is still this holder's.
--
-- KEYS  lease
-- ARGV  holder  leaseTime
-- REPLY integer: 1 extended; 0 gone, or somebody else's

if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
