-- force: takes the key from this holder, whoever asks, and passes it on. From no other: who has it since is well.
--
-- KEYS  lease  queue
-- ARGV  holder  wake  offerTime  pubsub
-- REPLY integer: 1 it was held; 0 not any more
-- USES  shared/lease.lua shared/wake.lua shared/pass-on.lua

if holder_of(KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if not pass_on(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]) then wake_up(ARGV[4], ARGV[2], 'look') end
return 1
