import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { leaseName, PREFIX, queueName } from '../lease/actors.js';
import type { StoreActor } from '../lease/claims.js';
import { describeOrder } from '../lease/order-contract.js';
import { describeStore } from '../lease/store-contract.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('RedisStore', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(inject('redis').url as string);
  });
  afterAll(() => admin.disconnect());

  const settings = [
    { name: 'RESP3', options: { protocol: 3 } },
    { name: 'RESP2', options: { protocol: 2 } },
    // What an application may have set for its own use of the client.
    { name: 'numbers as strings', options: { stringNumbers: true } },
    { name: 'automatic pipelines', options: { enableAutoPipelining: true } },
    {
      name: 'lazy, with a prefix and a time limit',
      options: { lazyConnect: true, keyPrefix: 'app:', commandTimeout: 5_000 },
    },
  ] as const;

  for (const { name, options } of settings) {
    const makeActor = (wakeUps = true): StoreActor => {
      const connectionName = randomUUID();
      const redis = new Redis(inject('redis').url as string, { ...options, connectionName });
      const store = new RedisStore(redis, { keyPrefix: PREFIX, commandTimeout: 10_000, wakeUps }, () => {});
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
        forget: (key) => redis.del(leaseName(key), queueName(key)),
      };
    };
    describeStore(name, () => makeActor());
    describeOrder(name, () => makeActor());
    if (name === 'RESP3') describeStore('without wake-ups', () => makeActor(false), { wakeUps: false });
  }
});
