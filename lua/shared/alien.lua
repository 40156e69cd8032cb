-- alien: whether a name has a value of another type, written by other software. Scripts that use the name fail. Tested
-- with a command that fails for it and not with TYPE, which would be one more right for the user.

local function is_alien(verb, name)
  local got = redis.pcall(verb, name)
  return type(got) == 'table' and got.err ~= nil and string.find(got.err, 'WRONGTYPE') ~= nil
end
