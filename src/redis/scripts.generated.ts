// DO NOT EDIT: made from lua/*.lua by `npm run generate`.
import type { Script } from './script.js';

export const acquire: Script<[lease: string, queue: string], [holder: string, leaseTime: string, receiver: string, enter: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'acquire',
  keys: 2,
  sha1: 'f4980d98299f4c3d0c3d3d1bd0f4538cb2fb608f',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      redis.call('SET', lease, holder, 'PX', offer_time)
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local own = ARGV[1] .. ' ' .. ARGV[3]
local holder = redis.call('GET', KEYS[1])
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  if first == nil or first == own then holder = ARGV[1] end
end
if holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
local enter = tonumber(ARGV[4])
if enter > 0 then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return -1 end
return math.max(1, left)`,
};

export const extend: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'extend',
  keys: 2,
  sha1: '5476cc6337ce1a87dbc533f6076be6b3f14b3dad',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      redis.call('SET', lease, holder, 'PX', offer_time)
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if holder == false and not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  wake_up(ARGV[5], ARGV[3], 'look')
end
return 0`,
};

export const force: Script<[lease: string, queue: string], [holder: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'force',
  keys: 2,
  sha1: '63abd0882b6b44ae1bcdeff21a01289e3bd77105',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      redis.call('SET', lease, holder, 'PX', offer_time)
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if not pass_on(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]) then wake_up(ARGV[4], ARGV[2], 'look') end
return 1`,
};

export const inspect: Script<[lease: string, queue: string], [], unknown[]> = {
  name: 'inspect',
  keys: 2,
  sha1: '90837b0c429f77755b70c57d8af7995cee4cd1ff',
  lua: `return { redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]), redis.call('LLEN', KEYS[2]) }`,
};

export const release: Script<[lease: string, queue: string], [holder: string, receiver: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'release',
  keys: 2,
  sha1: '068a02d20e6eb5327226d9325fdf0c7fe12dc40f',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      redis.call('SET', lease, holder, 'PX', offer_time)
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
redis.call('LREM', KEYS[2], 1, ARGV[1] .. ' ' .. ARGV[2])
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  redis.call('DEL', KEYS[1])
  wake_up(ARGV[5], ARGV[3], 'look')
end
return holder and 1 or 0`,
};

export const transfer: Script<[lease: string], [holder: string, successor: string, leaseTime: string], number> = {
  name: 'transfer',
  keys: 1,
  sha1: '391686952f05f5a6e70c4e3de42e09b3066b2cfe',
  lua: `local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`,
};

export const yield_: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'yield',
  keys: 2,
  sha1: '53eabe172adcfb3eb846ab2e53e48998d18a5d07',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      redis.call('SET', lease, holder, 'PX', offer_time)
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then return 0 end
if holder then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
wake_up(ARGV[5], ARGV[3], 'look')
return 0`,
};
