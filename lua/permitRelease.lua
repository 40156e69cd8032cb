-- permitRelease: releases this holder's lease of a permit from `first` to `last`, removes its place in the queue, and passes the
-- permit on. By force, as in force, there is no receiver.
--
-- KEYS  permits  queue
-- ARGV  first  last  holder  receiver  most  wake  offerTime  pubsub  name
-- REPLY integer: 1 released; 0 it had no lease
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/permits.lua shared/alien.lua
--
-- As in release: one script, because a process that gives up may just have got an offer.

if ARGV[4] == '' then
  local cleared = 0
  if is_alien_queue(KEYS[2]) then cleared = redis.call('DEL', KEYS[2]) end
  if is_of_another_type(redis.pcall('HLEN', KEYS[1])) then cleared = redis.call('DEL', KEYS[1]) end
  if cleared == 1 then
    wake_up(ARGV[8], ARGV[6], 'look')
    return 1
  end
elseif may_search(KEYS[2]) then
  redis.call('LREM', KEYS[2], 1, permit_place(ARGV[3], ARGV[4], ARGV[5], ARGV[9], ARGV[7]))
end
local state = permits_of(KEYS[1])
local number = number_of(state, ARGV[3])
local had = number ~= nil and number >= tonumber(ARGV[1]) and number <= tonumber(ARGV[2])
if had then
  redis.call('HDEL', KEYS[1], number)
  state.at[number] = nil
  state.count = state.count - 1
end
serve_or_tell(KEYS[1], KEYS[2], state, ARGV[6], ARGV[7], ARGV[8], ARGV[1], ARGV[2], ARGV[5])
return had and 1 or 0
