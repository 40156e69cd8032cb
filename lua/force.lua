-- force: takes the key from whoever has it, and passes it on.
--
-- KEYS  lease  queue
-- ARGV  wake  offerTime
-- REPLY integer: 1 it was held; 0 it was not
-- USES  shared/pass-on.lua

local held = redis.call('DEL', KEYS[1])
if not pass_on(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then redis.call('PUBLISH', ARGV[1], 'look') end
return held
