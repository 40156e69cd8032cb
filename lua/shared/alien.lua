-- alien: a value of another type where one of ours should be. Somebody else has written there, and every script that
-- comes upon it fails. Found by a command that fails by it: TYPE would be one more that the user needs a right to.

local function is_alien(verb, name)
  local got = redis.pcall(verb, name)
  return type(got) == 'table' and got.err ~= nil and string.find(got.err, 'WRONGTYPE') ~= nil
end
