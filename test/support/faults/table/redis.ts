import { setTimeout as sleep } from 'node:timers/promises';
import { type Fault, lasting, sudden } from '../fault.js';

const command = (...words: [string, ...string[]]): Fault =>
  sudden(words.join(' '), 'redis', (stage) => stage.tellNodes(...words));

/** To the one Redis that all have. */
export const REDIS: readonly Fault[] = [
  command('FLUSHALL'),
  command('SCRIPT', 'FLUSH'),
  command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
  {
    name: 'Redis killed and restarted empty',
    place: 'redis',
    async strike({ redis }, _, ms) {
      await redis.killHard();
      await sleep(ms / 4);
      await redis.start();
      return true;
    },
  },
  lasting(
    'Redis frozen',
    'redis',
    ({ redis }) => redis.freeze(),
    ({ redis }) => redis.thaw(),
  ),
  // Every command that writes first evicts all there is, leases too, and is then refused.
  lasting(
    'leases evicted under maxmemory',
    'redis',
    (stage) => stage.tellNodes('CONFIG', 'SET', 'maxmemory', '1'),
    (stage) => stage.tellNodes('CONFIG', 'SET', 'maxmemory', '0'),
  ),
];
