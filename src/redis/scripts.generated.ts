// DO NOT EDIT: made from lua/*.lua by `npm run generate`.
import type { Script } from './script.js';

export const acquire: Script<[lease: string], [holder: string, leaseTime: string], number> = {
  name: 'acquire',
  keys: 1,
  sha1: '37d7020c81d3b7c9c459fa0862bad26506320ecb',
  lua: `local holder = redis.call('GET', KEYS[1])
if holder == false or holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return -1 end
return math.max(1, left)`,
};

export const extend: Script<[lease: string], [holder: string, leaseTime: string], number> = {
  name: 'extend',
  keys: 1,
  sha1: 'b8781a7c50e72ae869ca41c3fe9f504e365f3881',
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`,
};

export const release: Script<[lease: string], [holder: string, channel: string], number> = {
  name: 'release',
  keys: 1,
  sha1: 'a1602dff6cb2fc6d66a83595b95653b43ff5c807',
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], 'look')
  return 1
end
return 0`,
};
