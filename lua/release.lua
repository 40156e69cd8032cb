-- release: gives a lease back, if it is still this holder's, and wakes those who wait for it.
--
-- KEYS  lease
-- ARGV  holder  channel
-- REPLY integer: 1 released; 0 gone, or somebody else's
--
-- The message is a hint that it is worth looking. Whoever misses it looks when the lease would have ended.

if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], 'look')
  return 1
end
return 0
