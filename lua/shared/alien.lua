-- alien: whether a name has a value that other software wrote: one of another type, or a longer one than this package writes.
-- The type is tested with a command that fails for it and not with TYPE, which would be one more right for the user.

local function is_of_another_type(got)
  return type(got) == 'table' and got.err ~= nil and string.find(got.err, 'WRONGTYPE') ~= nil
end

local function is_alien_lease(lease)
  local value = redis.pcall('GETRANGE', lease, 0, LONGEST)
  return is_of_another_type(value) or type(value) == 'string' and #value > LONGEST
end

local function is_alien_queue(queue)
  if is_of_another_type(redis.pcall('LLEN', queue)) or not may_search(queue) then return true end
  -- Without the right to read it, nothing is known of the entry.
  local first = redis.pcall('LRANGE', queue, 0, 0)[1]
  return first ~= nil and #first > LONGEST
end
