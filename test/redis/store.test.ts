import { Redis } from 'ioredis';
import { inject, onTestFinished } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { PREFIX } from '../lease/actors.js';
import { describeStore } from '../lease/store-contract.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('RedisStore', () => {
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
    describeStore(name, () => {
      const redis = new Redis(inject('redis').url as string, options);
      const store = new RedisStore(redis, { keyPrefix: PREFIX, commandTimeout: 10_000 }, () => {});
      const kill = () => {
        void store.close();
        redis.disconnect();
      };
      onTestFinished(kill);
      return { store, kill };
    });
  }
});
