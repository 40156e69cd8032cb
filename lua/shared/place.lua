-- place: an entry of the queue: `<holder> <receiver> <name>`, or `<holder> <receiver>` without a name. The name is that
-- of the waiting process and may have spaces inside. It is only shown to people.
--
-- Without offers (offer_time 0) a place is that of the process, whose looks each have another holder.

local function place_of(holder, receiver, name, offer_time)
  return (offer_time == '0' and '-' or holder) .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end

-- Returns holder, receiver and name; nothing if the entry is not one of this package.
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end

-- More processes than wait for one key. A longer list is of other software. LPOS and LREM would read the whole of it.
local MOST_PLACES = 10000

local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end

-- How many entries of processes that have ended one script removes. The next script removes more.
local MOST_ENDED = 1000
