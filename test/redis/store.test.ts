import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5, type RedisOptions as Redis5Options } from 'ioredis-5';
import { inject } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { describeOrder } from '../waiting/order-contract.js';
import { describePermits } from '../waiting/permits-contract.js';
import { describeStore } from '../waiting/store-contract.js';
import { storeActor } from './store-actor.js';

describeWithShop('RedisStore', () => {
  const keyPrefix = `store-${randomUUID()}:`;
  const with6 = (options: Omit<RedisOptions, 'replyMapping'>) => (url: string, connectionName: string) =>
    new Redis(url, { ...options, connectionName });
  const with5 = (options: Redis5Options) => (url: string, connectionName: string) =>
    new Redis5(url, { ...options, connectionName }) as unknown as Redis;
  const clients = [
    { name: 'RESP3', open: with6({ protocol: 3 }) },
    { name: 'RESP2', open: with6({ protocol: 2 }) },
    // What an application may have set for its own use of the client.
    { name: 'numbers as strings', open: with6({ stringNumbers: true }) },
    { name: 'automatic pipelines', open: with6({ enableAutoPipelining: true }) },
    {
      name: 'lazy, with a prefix and a time limit',
      open: with6({ lazyConnect: true, keyPrefix: 'app:', commandTimeout: 5_000 }),
    },
    { name: 'ioredis 5', open: with5({}) },
    {
      name: 'ioredis 5, all of these',
      open: with5({ enableAutoPipelining: true, keyPrefix: 'app:', stringNumbers: true }),
    },
  ] as const;

  for (const { name, open } of clients) {
    const makeActor = (wakeUps = true, process?: string) => {
      const url = inject('redis').url as string;
      const connectionName = randomUUID();
      const options = { keyPrefix, wakeUps, ...(process !== undefined && { name: process }) };
      return storeActor(open(url, connectionName), options, { servers: [url], connectionName });
    };
    describeStore(name, () => makeActor());
    describeOrder(name, (process) => makeActor(true, process));
    describePermits(name, (process) => makeActor(true, process));
    if (name === 'RESP3') describeStore('without wake-ups', () => makeActor(false), { wakeUps: false });
  }
});
