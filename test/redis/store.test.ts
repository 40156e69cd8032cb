import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5, type RedisOptions as Redis5Options } from 'ioredis-5';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { RedisStore } from '../../src/redis/store.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import type { StoreActor } from '../waiting/claims.js';
import { describeOrder } from '../waiting/order-contract.js';
import { describeStore } from '../waiting/store-contract.js';

describeWithShop('RedisStore', () => {
  // Others note refused writes on this server, too, and of many the last ones are kept.
  const keyPrefix = `store-${randomUUID()}:`;
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(inject('redis').url as string);
  });
  afterAll(() => admin.disconnect());

  const with6 = (options: Omit<RedisOptions, 'replyMapping'>) => (url: string, connectionName: string) =>
    new Redis(url, { ...options, connectionName });
  const with5 = (options: Redis5Options) => (url: string, connectionName: string) =>
    new Redis5(url, { ...options, connectionName });
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
    const makeActor = (wakeUps = true, process?: string): StoreActor => {
      const connectionName = randomUUID();
      const redis = open(inject('redis').url as string, connectionName);
      const named = process === undefined ? {} : { name: process };
      const store = new RedisStore(redis, { keyPrefix, commandTimeout: 10_000, wakeUps, ...named }, () => {});
      const close = () => {
        void store.close();
        redis.disconnect();
      };
      onTestFinished(close);
      const isGone = async () => !String(await admin.client('LIST')).includes(connectionName);
      return {
        store,
        kill: async () => {
          close();
          await eventually('the server has noticed', isGone);
        },
        forget: (key) => {
          const { lease, queue } = namesOf(keyPrefix, key);
          return redis.del(lease, queue);
        },
      };
    };
    describeStore(name, () => makeActor());
    describeOrder(name, (process) => makeActor(true, process));
    if (name === 'RESP3') describeStore('without wake-ups', () => makeActor(false), { wakeUps: false });
  }
});
