-- permitInspect: who has the permits of a key, and which processes wait.
--
-- KEYS  permits  queue
-- ARGV  names
-- REPLY list: entries of the queue; the number of the name in Redis that has a value of other software, 0 for none; the names of
--       the waiting processes, as of inspect; then for each permit that is taken its number, its holder, the milliseconds that
--       its lease still has, and the name of the holder's process
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/permits.lua shared/alien.lua

if is_of_another_type(redis.pcall('HLEN', KEYS[1])) then return { 0, 1, {} } end
if is_alien_queue(KEYS[2]) then return { 0, 2, {} } end
local state = permits_of(KEYS[1])
local waiting = redis.call('LLEN', KEYS[2])
local names = {}
for at = 1, math.min(waiting, tonumber(ARGV[1])) do
  local _, _, waiter = parts_of(redis.call('LINDEX', KEYS[2], at - 1) or '')
  names[at] = string.match(waiter or '', '^%d+ (.*)$') or ''
end
local reply = { waiting, 0, names }
for number, lease in pairs(state.at) do
  for _, part in ipairs({ number, lease.holder, lease.left, lease.name }) do reply[#reply + 1] = part end
end
return reply
