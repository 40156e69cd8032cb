// DO NOT EDIT: made from lua/*.lua by `npm run generate`.
import type { Script } from './script.js';

export const acquire: Script<[lease: string, queue: string], [holder: string, leaseTime: string, receiver: string, enter: string, wake: string, offerTime: string, pubsub: string, name: string, former: string], unknown[]> = {
  name: 'acquire',
  keys: 2,
  sha1: '99f26948b4a01a68ee6ba9d7461dadf928a8e6fc',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
local function pass_on(lease, queue, wake, offer_time, pubsub, own, told)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and (told == '*' or holder == told or is_there(pubsub, wake, receiver)) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local own = place_of(ARGV[1], ARGV[3], ARGV[8])
local enter = tonumber(ARGV[4])
local holder, time, name = holder_of(KEYS[1])
local is_free = ARGV[9] ~= '' and holder == ARGV[9]
if holder == false then
  local first = pass_on(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], own)
  local behind = ARGV[6] == '0' and enter == 0 and redis.call('LLEN', KEYS[2]) > 0
  is_free = (first == nil or first == own) and not behind
end
if is_free then
  if (holder or ARGV[6] == '0') and may_search(KEYS[2]) then redis.call('LREM', KEYS[2], 1, own) end
  if holder and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
    wake_up(ARGV[7], ARGV[5], ARGV[1] .. ' ' .. ARGV[2])
  end
  put(KEYS[1], ARGV[1], ARGV[2], ARGV[8])
  return { 0, redis.call('LLEN', KEYS[2]) }
end
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[8], time, name)
  return { 0, redis.call('LLEN', KEYS[2]) }
end
if enter > 0 and may_search(KEYS[2]) then
  if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end
  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end
end
holder, time, name = holder_of(KEYS[1])
if holder == false then return { 1, '', '' } end
return { time_left(KEYS[1], time), holder, name }`,
};

export const extend: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string, name: string], number> = {
  name: 'extend',
  keys: 2,
  sha1: 'ba7561760fb4cc37c6b311ff551141d51f4c7ab6',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
local function pass_on(lease, queue, wake, offer_time, pubsub, own, told)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and (told == '*' or holder == told or is_there(pubsub, wake, receiver)) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local holder, time, name = holder_of(KEYS[1])
if holder == ARGV[1] then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[6], time, name)
  return 1
end
if holder == false and not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then
  wake_up(ARGV[5], ARGV[3], 'look')
end
return 0`,
};

export const force: Script<[lease: string, queue: string], [holder: string, wake: string, offerTime: string, pubsub: string], number> = {
  name: 'force',
  keys: 2,
  sha1: 'f55fa9b3c6f595331b5320c11194b82a55c401be',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
local function pass_on(lease, queue, wake, offer_time, pubsub, own, told)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and (told == '*' or holder == told or is_there(pubsub, wake, receiver)) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local function is_of_another_type(got)
  return type(got) == 'table' and got.err ~= nil and string.find(got.err, 'WRONGTYPE') ~= nil
end
local function is_alien_lease(lease)
  local value = redis.pcall('GETRANGE', lease, 0, LONGEST)
  return is_of_another_type(value) or type(value) == 'string' and #value > LONGEST
end
local function is_alien_queue(queue)
  if is_of_another_type(redis.pcall('LLEN', queue)) or not may_search(queue) then return true end
  local first = redis.pcall('LRANGE', queue, 0, 0)[1]
  return first ~= nil and #first > LONGEST
end
local cleared = 0
if is_alien_queue(KEYS[2]) then cleared = redis.call('DEL', KEYS[2]) end
if is_alien_lease(KEYS[1]) then cleared = redis.call('DEL', KEYS[1]) end
local holder = holder_of(KEYS[1])
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
elseif holder or cleared == 0 then
  return cleared
end
if not pass_on(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]) then wake_up(ARGV[4], ARGV[2], 'look') end
return 1`,
};

export const hint: Script<[lease: string, queue: string], [holder: string, attempt: string, wake: string, pubsub: string], string> = {
  name: 'hint',
  keys: 2,
  sha1: 'c77898107f531aab15e123210a99e558a9b1a43a',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
if holder_of(KEYS[1]) ~= ARGV[1] then return '' end
for _ = 1, MOST_ENDED do
  local first = redis.call('LINDEX', KEYS[2], 0)
  if first == false or #first > LONGEST then return '' end
  local next, receiver = parts_of(first)
  if next and is_there(ARGV[4], ARGV[3], receiver) then
    wake_up(ARGV[4], ARGV[3], 'next ' .. next .. ' ' .. ARGV[1] .. ' ' .. ARGV[2])
    return next
  end
  redis.call('LPOP', KEYS[2])
end
return ''`,
};

export const inspect: Script<[lease: string, queue: string], [names: string], unknown[]> = {
  name: 'inspect',
  keys: 2,
  sha1: '22f17fdbf6153a42b8ed3630008d584978cac948',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_of_another_type(got)
  return type(got) == 'table' and got.err ~= nil and string.find(got.err, 'WRONGTYPE') ~= nil
end
local function is_alien_lease(lease)
  local value = redis.pcall('GETRANGE', lease, 0, LONGEST)
  return is_of_another_type(value) or type(value) == 'string' and #value > LONGEST
end
local function is_alien_queue(queue)
  if is_of_another_type(redis.pcall('LLEN', queue)) or not may_search(queue) then return true end
  local first = redis.pcall('LRANGE', queue, 0, 0)[1]
  return first ~= nil and #first > LONGEST
end
local alien = is_alien_lease(KEYS[1]) and 1 or is_alien_queue(KEYS[2]) and 2 or 0
local holder, name, left, waiting, _ = '', '', 0, 0
local names = {}
if alien ~= 1 then
  holder, _, name = holder_of(KEYS[1])
  left = redis.call('PTTL', KEYS[1])
  if alien == 0 then waiting = redis.call('LLEN', KEYS[2]) end
end
for at = 1, math.min(waiting, tonumber(ARGV[1])) do
  local place = redis.pcall('LRANGE', KEYS[2], at - 1, at - 1)[1]
  if not place then break end
  local _, _, waiter = parts_of(place)
  names[at] = waiter or ''
  if #place > LONGEST then break end
end
return { holder or '', left, waiting, alien, name or '', names }`,
};

export const note: Script<[refusals: string], [entries: string, most: string, keep: string], number> = {
  name: 'note',
  keys: 1,
  sha1: 'd3cf39a4316051e7694213e116ed9bd488630d7e',
  lua: `local LONGEST_REFUSAL = 8192
local MOST_REMOVED = 1000
local function is_refusal(entry)
  return #entry <= LONGEST_REFUSAL and string.find(entry, '^%d+ {') ~= nil
end
local last = redis.call('LINDEX', KEYS[1], -1)
if last and not is_refusal(last) then return 0 end
local now = redis.call('TIME')
local at = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
for entry in string.gmatch(ARGV[1], '[^\\n]+') do
  redis.call('RPUSH', KEYS[1], at .. ' ' .. entry)
end
for _ = ARGV[2] + 1, math.min(redis.call('LLEN', KEYS[1]), ARGV[2] + MOST_REMOVED) do
  redis.call('LPOP', KEYS[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('LLEN', KEYS[1])`,
};

export const noted: Script<[refusals: string], [most: string], unknown[]> = {
  name: 'noted',
  keys: 1,
  sha1: '57d2b54c7e84fc9ac8cbe9a5e25dd77b5ffda007',
  lua: `local LONGEST_REFUSAL = 8192
local MOST_REMOVED = 1000
local function is_refusal(entry)
  return #entry <= LONGEST_REFUSAL and string.find(entry, '^%d+ {') ~= nil
end
local entries = {}
for at = 1, tonumber(ARGV[1]) do
  local entry = redis.call('LRANGE', KEYS[1], -at, -at)[1]
  if not entry or #entry > LONGEST_REFUSAL then break end
  table.insert(entries, 1, entry)
end
local now = redis.call('TIME')
return { string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)), entries }`,
};

export const release: Script<[lease: string, queue: string], [holder: string, receiver: string, wake: string, offerTime: string, pubsub: string, name: string, told: string], number> = {
  name: 'release',
  keys: 2,
  sha1: '5d3edf13a9082c7da19d87c22f8375e06c5edab9',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
local function pass_on(lease, queue, wake, offer_time, pubsub, own, told)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and (told == '*' or holder == told or is_there(pubsub, wake, receiver)) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
if may_search(KEYS[2]) then redis.call('LREM', KEYS[2], 1, place_of(ARGV[1], ARGV[2], ARGV[6])) end
local holder = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5], nil, ARGV[7]) then
  redis.call('DEL', KEYS[1])
  wake_up(ARGV[5], ARGV[3], 'look')
end
return holder and 1 or 0`,
};

export const transfer: Script<[lease: string], [holder: string, successor: string, leaseTime: string, wake: string, pubsub: string, name: string], number> = {
  name: 'transfer',
  keys: 1,
  sha1: '2c0eb67f830d63d88a997ee5b27f668ea54913e2',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function is_sharded(pubsub)
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
local holder = holder_of(KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end
extend(KEYS[1], ARGV[2], ARGV[3], ARGV[6])
wake_up(ARGV[5], ARGV[4], 'look')
return 1`,
};

export const yield_: Script<[lease: string, queue: string], [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string, name: string], number> = {
  name: 'yield',
  keys: 2,
  sha1: '15527b2d4ff240ef5bca84d21ed4fecfda544292',
  lua: `local LONGEST = 1024
local function holder_of(lease)
  local value = redis.call('GETRANGE', lease, 0, LONGEST)
  if value == '' then return false end
  if #value > LONGEST then error('WRONGTYPE the value is longer than a lease', 0) end
  local holder, rest = string.match(value, '^(%S+)( .*)$')
  local name, time = string.match(rest or '', '^(.*) ([1-9]%d*)$')
  if time == nil then return value, nil, '' end
  return holder, time, string.sub(name, 2)
end
local function put(lease, holder, time, name)
  redis.call('SET', lease, holder .. (name == '' and '' or ' ' .. name) .. ' ' .. time, 'PX', time)
end
local function extend(lease, holder, time, name, time_before, name_before)
  redis.call('PEXPIRE', lease, time)
  if time ~= time_before or name ~= name_before then put(lease, holder, time, name) end
end
local function time_left(lease, time)
  local left = redis.call('PTTL', lease)
  if left < 0 then return -1 end
  if time and left > tonumber(time) then
    redis.call('PEXPIRE', lease, time)
    return tonumber(time)
  end
  return math.max(1, left)
end
local function place_of(holder, receiver, name)
  return holder .. ' ' .. receiver .. (name == '' and '' or ' ' .. name)
end
local function parts_of(place)
  if #place > LONGEST then return nil end
  return string.match(place, '^(%S+) (%S+) ?(.*)$')
end
local MOST_PLACES = 10000
local function may_search(queue)
  return redis.call('LLEN', queue) <= MOST_PLACES
end
local MOST_ENDED = 1000
local function is_sharded(pubsub)
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
local function pass_on(lease, queue, wake, offer_time, pubsub, own, told)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and (told == '*' or holder == told or is_there(pubsub, wake, receiver)) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
local holder, time, name = holder_of(KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then return 0 end
local waited_for = ARGV[4] == '0' and redis.call('LLEN', KEYS[2]) > 0
if holder and not waited_for then
  extend(KEYS[1], ARGV[1], ARGV[2], ARGV[6], time, name)
  return 1
end
redis.call('DEL', KEYS[1], KEYS[2])
wake_up(ARGV[5], ARGV[3], 'look')
return 0`,
};
