-- permitExtend: extends the lease of a permit to its full time, in the name of `successor`, if this holder or that one has it.
--
-- KEYS  permits  queue
-- ARGV  number  holder  successor  leaseTime  wake  offerTime  pubsub  name
-- REPLY integer: 1 extended; 0 gone, or another holder has the permit
-- USES  shared/lease.lua shared/place.lua shared/wake.lua shared/permits.lua
--
-- As in extend and transfer: if nobody has it, those who wait do not know that.

local state = permits_of(KEYS[1])
local lease = state.at[tonumber(ARGV[1])]
if lease and (lease.holder == ARGV[2] or lease.holder == ARGV[3]) then
  put_permit(KEYS[1], state, tonumber(ARGV[1]), ARGV[3], ARGV[4], ARGV[8])
  return 1
end
if not lease then
  serve_or_tell(KEYS[1], KEYS[2], state, ARGV[5], ARGV[6], ARGV[7], ARGV[1], ARGV[1], MOST_PERMITS)
end
return 0
