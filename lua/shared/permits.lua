-- permits: who has the permits of a key: a hash from the number of a permit to `<ends> <ms> <holder> <name>`. `ends` is by the
-- wall clock of this server, as the expiry of a lease is, and as there no lease ends later than the time that it was taken for.

-- No hash of this package has more.
local MOST_PERMITS = 1000

-- The leases by their numbers, and how many they are. Those whose time is over are removed.
local function permits_of(permits)
  if redis.call('HLEN', permits) > MOST_PERMITS then error('WRONGTYPE the hash has more than the permits of a key', 0) end
  local time = redis.call('TIME')
  local state = { now = time[1] * 1000 + math.floor(time[2] / 1000), count = 0, at = {} }
  local all = redis.call('HGETALL', permits)
  for at = 1, #all, 2 do
    local ends, ms, holder, name = string.match(all[at + 1], '^(%d+) (%d+) (%S+) ?(.*)$')
    if not holder or not tonumber(all[at]) then error('WRONGTYPE the hash has a value that is no permit', 0) end
    local left = math.min(ends - state.now, tonumber(ms))
    if left > 0 then
      state.count = state.count + 1
      state.at[tonumber(all[at])] = { left = left, holder = holder, name = name }
    else
      redis.call('HDEL', permits, all[at])
    end
  end
  return state
end

-- PEXPIRE comes first, because a server whose memory is full refuses a script whose first write may need memory.
local function put_permit(permits, state, number, holder, ms, name)
  if redis.call('PTTL', permits) < tonumber(ms) then redis.call('PEXPIRE', permits, ms) end
  local ends = string.format('%.0f', state.now + ms)
  redis.call('HSET', permits, number, ends .. ' ' .. ms .. ' ' .. holder .. (name == '' and '' or ' ' .. name))
  if redis.call('PTTL', permits) < tonumber(ms) then redis.call('PEXPIRE', permits, ms) end
  if not state.at[number] then state.count = state.count + 1 end
  state.at[number] = { left = tonumber(ms), holder = holder, name = name }
end

local function number_of(state, holder)
  for number, lease in pairs(state.at) do
    if lease.holder == holder then return number end
  end
end

-- The first free one of those from `first` to `last`, for a call that works only while fewer than `most` are taken.
local function free_permit(state, first, last, most)
  if state.count >= tonumber(most) then return nil end
  for number = tonumber(first), tonumber(last) do
    if not state.at[number] then return number end
  end
end

-- A place in the queue: as that of a lock, with the number of permits between.
local function permit_place(holder, receiver, most, name, offer_time)
  return place_of(holder, receiver, most .. (name == '' and '' or ' ' .. name), offer_time)
end

local function most_of(place)
  local holder, receiver, rest = parts_of(place)
  local most = string.match(rest or '', '^%d+')
  return most and tonumber(most), holder, receiver
end

-- Offers free permits to the first in the queue that are still subscribed, as pass_on does for a lock. One that works only
-- while fewer are taken keeps its place, and all behind it wait: otherwise it would never have its turn.
--
-- Returns the entry that waits then; `own` if that is the first; nil if nobody waits. state.told: whether an offer was made.
local function serve(permits, queue, state, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LINDEX', queue, 0)
    if entry == false or entry == own then return entry or nil end
    local most, holder, receiver = most_of(entry)
    if most == nil then return nil end
    local number = free_permit(state, 0, most - 1, most)
    -- One that has ended is not in the way of the next one, and otherwise keeps its place: it may only have lost its connection.
    local is_next = number or state.count < (most_of(redis.call('LINDEX', queue, 1) or '') or 0)
    if not is_next or not number and is_there(pubsub, wake, receiver) then return entry end
    redis.call('LPOP', queue)
    if number and is_there(pubsub, wake, receiver) then
      put_permit(permits, state, number, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      state.told = true
    end
  end
end

-- Behind a lease that has ended: who waits and has lost its place in a flush has to look.
local function serve_or_tell(permits, queue, state, wake, offer_time, pubsub, first, last, most)
  local waits = serve(permits, queue, state, wake, offer_time, pubsub)
  if waits == nil and not state.told and free_permit(state, first, last, most) then wake_up(pubsub, wake, 'look') end
end
