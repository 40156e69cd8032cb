import type { Mutant } from './mutant.js';

const tests = ['test/redis/store'];

export const LUA: readonly Mutant[] = [
  {
    name: 'acquire of what somebody has',
    file: 'lua/acquire.lua',
    change: [['if holder == ARGV[1] then\n  extend(', 'if true then\n  extend(']],
    tests,
    why: 'Two would have it.',
  },
  {
    name: 'acquire past the queue',
    file: 'lua/acquire.lua',
    change: [['  if (first == nil or first == own) and not behind then', '  if not behind then']],
    tests,
    why: 'Who comes last would be first.',
  },
  {
    name: 'two places of one',
    file: 'lua/acquire.lua',
    change: [
      [
        "if not redis.call('LPOS', KEYS[2], own) then redis.call('RPUSH', KEYS[2], own) end",
        "redis.call('RPUSH', KEYS[2], own)",
      ],
    ],
    tests,
    why: 'Each look would take one more, and offers go where nobody waits.',
  },
  {
    name: 'place at the front',
    file: 'lua/acquire.lua',
    change: [["redis.call('RPUSH'", "redis.call('LPUSH'"]],
    tests,
    why: 'First come, first served.',
  },
  {
    name: 'place without an end',
    file: 'lua/acquire.lua',
    change: [["  if redis.call('PTTL', KEYS[2]) < enter then redis.call('PEXPIRE', KEYS[2], enter) end\n", '']],
    tests,
    why: 'What the dead leave behind would stay.',
  },
  {
    name: 'lease without an end',
    file: 'lua/acquire.lua',
    change: [['put(KEYS[1], ARGV[1], ARGV[2])', "redis.call('SET', KEYS[1], ARGV[1])"]],
    tests,
    why: 'A crash would keep the key for ever.',
  },
  {
    name: 'extension of somebody else’s',
    file: 'lua/extend.lua',
    change: [['if holder == ARGV[1] then', 'if holder then']],
    tests,
    why: 'Who lost the lease would believe that it has it.',
  },
  {
    name: 'extension that finds nothing, and is silent',
    file: 'lua/extend.lua',
    change: [
      [
        'if holder == false and not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then',
        'if ARGV[5] == nil and pass_on(KEYS[1], KEYS[2]) then',
      ],
    ],
    tests,
    why: 'Those who wait would sleep to the end of a lease that was flushed.',
  },
  {
    name: 'release of somebody else’s',
    file: 'lua/release.lua',
    change: [['if holder and holder ~= ARGV[1] then return 0 end\n', '']],
    tests,
    why: 'Two would have it.',
  },
  {
    name: 'release that keeps the place',
    file: 'lua/release.lua',
    change: [["redis.call('LREM', KEYS[2], 1, ARGV[1] .. ' ' .. ARGV[2])\n", '']],
    tests,
    why: 'Offers would go to one that has given up.',
  },
  {
    name: 'release that passes nothing on',
    file: 'lua/release.lua',
    change: [['if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then', 'if ARGV[4] then']],
    tests,
    why: 'The key would go to whoever looks first.',
  },
  {
    name: 'release in silence',
    file: 'lua/release.lua',
    change: [["  wake_up(ARGV[5], ARGV[3], 'look')\n", '']],
    tests,
    why: 'Those whom a flush has taken out of the queue would sleep beside a free key.',
  },
  {
    name: 'yield of somebody else’s',
    file: 'lua/yield.lua',
    change: [['if holder and holder ~= ARGV[1] then return 0 end\n', '']],
    tests,
    why: 'It would end a lease that is held, or believe to have it.',
  },
  {
    name: 'yield that always keeps',
    file: 'lua/yield.lua',
    change: [
      [
        'if pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then return 0 end',
        'if ARGV[4] == nil then pass_on(KEYS[1], KEYS[2]) end',
      ],
    ],
    tests,
    why: 'A busy process would never let another one in.',
  },
  {
    name: 'transfer of somebody else’s',
    file: 'lua/transfer.lua',
    change: [['if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end\n', '']],
    tests,
    why: 'A lost handle would take the key from who has it.',
  },
  {
    name: 'offer that takes memory to confirm',
    file: 'lua/shared/lease.lua',
    change: [
      [
        "local function extend(lease, holder, time, time_before)\n  redis.call('PEXPIRE', lease, time)",
        'local function extend(lease, holder, time, time_before)',
      ],
    ],
    tests: ['test/redis/memory'],
    why: 'On a server whose memory is full it would go from one to the next, and no handle could be handed on.',
  },
  {
    name: 'lease that stands as long as Redis says',
    file: 'lua/shared/lease.lua',
    change: [['  if time and left > tonumber(time) then', '  if time == 0 then']],
    tests: ['test/redis/set-back', 'test/promises/g5-clocks'],
    why: 'When the clock of Redis is set back an hour, whoever crashed before keeps its key for an hour.',
  },
  {
    name: 'lease told to be shorter, and left as it is',
    file: 'lua/shared/lease.lua',
    change: [["    redis.call('PEXPIRE', lease, time)\n    return", '    return']],
    tests: ['test/redis/set-back', 'test/promises/g5-clocks'],
    why: 'The same, though everybody looks in time.',
  },
  {
    name: 'time of the first lease kept',
    file: 'lua/shared/lease.lua',
    change: [['  if time ~= time_before then put(lease, holder, time) end\n', '']],
    tests: ['test/redis/set-back'],
    why: 'What was taken as an offer of a second would be cut to that, and its holder lose it.',
  },
  {
    name: 'offer without an end',
    file: 'lua/shared/pass-on.lua',
    change: [['put(lease, holder, offer_time)', "redis.call('SET', lease, holder)"]],
    tests,
    why: 'One that is frozen would keep the others waiting for ever.',
  },
  {
    name: 'offer told to the one alone',
    file: 'lua/shared/pass-on.lua',
    change: [['wake_up(pubsub, wake, holder', "wake_up(pubsub, wake .. ':' .. receiver, holder"]],
    tests,
    why: 'If it is lost there, the others sleep on beside a free key.',
  },
  {
    name: 'offer to the dead',
    file: 'lua/shared/wake.lua',
    change: [['[2] > 0', '[2] >= 0']],
    tests,
    why: 'Each of them would cost an offer’s time.',
  },
];
