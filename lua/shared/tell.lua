-- tell: publishes a wake-up, where there is a channel for them: a proxy or a user may know nothing of pub/sub, and would
-- fail the whole script.

local function tell(wake, message)
  if wake ~= '' then redis.call('PUBLISH', wake, message) end
end
