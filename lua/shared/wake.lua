-- wake-ups: the verbs of sharded pub/sub are for a Cluster, whose nodes have them since Redis 7. A subscriber finds
-- out in the same way, at the same node, so both speak the same. Without a channel nothing is published: a proxy or a
-- user may know nothing of pub/sub, and would fail the whole script.

local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end

local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end

-- A process that has ended has no subscription any more; a frozen one still has.
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
