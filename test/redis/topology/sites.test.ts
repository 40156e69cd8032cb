import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { RedisStore } from '../../../src/redis/store.js';
import { eventually } from '../../support/eventually.js';
import { connectTo } from '../../support/redis-site.js';
import { askServer, type RedisGroup } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { TOPOLOGIES } from '../../support/topologies.js';
import { leaseName, PREFIX, queueName } from '../../waiting/actors.js';
import type { StoreActor } from '../../waiting/claims.js';
import { describeOrder } from '../../waiting/order-contract.js';
import { describeStore } from '../../waiting/store-contract.js';

function makeActor({ site, nodes }: RedisGroup, process?: string): StoreActor {
  const connectionName = randomUUID();
  const connection = connectTo(site, { connectionName });
  const redis = connection.redis as Redis;
  const named = process === undefined ? {} : { name: process };
  const store = new RedisStore(redis, { keyPrefix: PREFIX, commandTimeout: 10_000, ...named }, () => {});
  const close = () => {
    void store.close();
    connection.close();
  };
  onTestFinished(close);
  const isGone = async () => {
    const lists = await Promise.all(nodes.map(({ url }) => askServer(url, 'CLIENT', 'LIST')));
    return !String(lists).includes(connectionName);
  };
  return {
    store,
    kill: async () => {
      close();
      await eventually('the servers have noticed', isGone);
    },
    forget: (key) => redis.del(leaseName(key), queueName(key)),
  };
}

// Each of them has a queue, so it keeps the order too.
for (const name of ['sentinel', 'valkey'] as const) {
  const { start, unavailable } = TOPOLOGIES[name];
  describeWithGroup<RedisGroup>(
    `RedisStore on ${name}`,
    start,
    (group) => {
      const make = (process?: string) => makeActor(group(), process);
      describeStore(name, make);
      describeOrder(name, make);
    },
    unavailable(),
  );
}
