// DO NOT EDIT: made from lua/*.lua by `npm run generate`.
import type { Script } from './script.js';

export const acquire: Script<[lease: string, queue: string], [holder: string, leaseTime: string, receiver: string, enter: string, wake: string, offerTime: string, pubsub: string], unknown[]> = {
  name: 'acquire',
  keys: 2,
  sha1: '9449a2c99c393416530c2c111afb1619b9dec6c5',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
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
local enter = tonumber(ARGV[4])
local holder = redis.call('GET', KEYS[1])
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  local behind = ARGV[6] == '0' and enter == 0 and redis.call('LLEN', KEYS[2]) > 0
  if (first == nil or first == own) and not behind then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    if ARGV[6] == '0' then redis.call('LREM', KEYS[2], 1, own) end
    return { 0, '' }
  end
end
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return { 0, '' }
end
if enter > 0 then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
holder = redis.call('GET', KEYS[1])
if holder == false then return { 1, '' } end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return { -1, holder } end
return { math.max(1, left), holder }`,
};

export const extend: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'extend',
  keys: 2,
  sha1: '93768d6f2b821531bf0763474577f2b57528ecc0',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
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
  sha1: '5722484d9c078349be2d67c9246caf92b892cb8b',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
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
  sha1: '67305a68851f198b61afed2f0e1b6403649fe6ae',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
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
  sha1: 'cc1a3f45ebd4a572298e040d58f865ad1ca66c68',
  lua: `local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`,
};

export const yield_: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'yield',
  keys: 2,
  sha1: '2bc1d20f42d6e7439b7334c4504b390dfd855f0b',
  lua: `local function is_sharded(pubsub)
  return pubsub == 'sharded' and redis.REDIS_VERSION_NUM ~= nil
end
local function wake_up(pubsub, wake, message)
  if wake == '' then return end
  redis.call(is_sharded(pubsub) and 'SPUBLISH' or 'PUBLISH', wake, message)
end
local function is_there(pubsub, wake, receiver)
  if wake == '' then return true end
  return redis.call('PUBSUB', is_sharded(pubsub) and 'SHARDNUMSUB' or 'NUMSUB', wake .. ':' .. receiver)[2] > 0
end
local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
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
local waited_for = ARGV[4] == '0' and redis.call('LLEN', KEYS[2]) > 0
if holder and not waited_for then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
redis.call('DEL', KEYS[1], KEYS[2])
wake_up(ARGV[5], ARGV[3], 'look')
return 0`,
};
