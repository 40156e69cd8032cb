-- wake-ups: sharded pub/sub is used on a Cluster whose nodes have it (Redis 7). Subscribers decide in the same way at
-- the same node, so both use the same commands. Without a channel nothing is published: with a proxy or a user without
-- pub/sub, the whole script would fail.

local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end

local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end

-- A process that has ended has no subscription any more. A frozen one still has.
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
