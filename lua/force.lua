-- force: takes the key from this holder and passes it on. Does not take it from a later holder. Deletes values
-- that other software wrote, which block the key.
--
-- KEYS  lease  queue
-- ARGV  holder  wake  offerTime  pubsub
-- REPLY integer: 1 if it was held, or there was something to delete; 0 if not
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/pass-on.lua shared/alien.lua

local cleared = 0
if is_alien_queue(KEYS[2]) then cleared = redis.call('DEL', KEYS[2]) end
if is_alien_lease(KEYS[1]) then cleared = redis.call('DEL', KEYS[1]) end
local holder = holder_of(KEYS[1])
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
elseif holder or cleared == 0 then
  return cleared
end
if not pass_on(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]) then wake_up(ARGV[4], ARGV[2], 'look') end
return 1
