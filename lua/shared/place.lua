-- place: an entry of the queue: `<holder> <receiver> <name>`, or `<holder> <receiver>` without a name. The name is that
-- of the waiting process and may have spaces inside. It is only shown to people.

local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end

-- Returns holder, receiver and name; nothing if the entry is not one of this package.
local function parts_of(place)
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
