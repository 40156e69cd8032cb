-- permitAcquire: acquire, for the first free permit from `first` to `last`, if fewer than `most` are taken.
--
-- KEYS  permits  queue
-- ARGV  holder  leaseTime  receiver  enter  wake  offerTime  pubsub  name  first  last  most
-- REPLY list: 0 taken, and the number of the permit; otherwise the milliseconds until the first of the leases ends, at least 1,
--       its holder and the name of that holder's process, '' if there is none
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/permits.lua

local own = permit_place(ARGV[1], ARGV[3], ARGV[11], ARGV[8], ARGV[6])
local enter = tonumber(ARGV[4])
local state = permits_of(KEYS[1])
local number = number_of(state, ARGV[1])
if number == nil then
  local first = serve(KEYS[1], KEYS[2], state, ARGV[5], ARGV[6], ARGV[7], own)
  local behind = ARGV[6] == '0' and enter == 0 and redis.call('LLEN', KEYS[2]) > 0
  if (first == nil or first == own) and not behind then number = free_permit(state, ARGV[9], ARGV[10], ARGV[11]) end
end
if number then
  if may_search(KEYS[2]) then redis.call('LREM', KEYS[2], 1, own) end
  put_permit(KEYS[1], state, number, ARGV[1], ARGV[2], ARGV[8])
  return { 0, number }
end
if enter > 0 and may_search(KEYS[2]) then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
local next = { left = 1, holder = '', name = '' }
for _, lease in pairs(state.at) do
  if next.holder == '' or lease.left < next.left then next = lease end
end
return { next.left, next.holder, next.name }
