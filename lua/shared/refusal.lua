-- refusal: an entry of the list of refused writes: `<ms> <JSON>`.

-- More bytes than an entry of this package has.
local LONGEST_REFUSAL = 8192
-- How many entries one script removes.
local MOST_REMOVED = 1000

local function is_refusal(entry)
  return #entry <= LONGEST_REFUSAL and string.find(entry, '^%d+ {') ~= nil
end
