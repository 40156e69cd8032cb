import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { connectTo } from '../../support/redis-site.js';
import type { RedisGroup } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { TOPOLOGIES } from '../../support/topologies.js';
import { describeOrder } from '../../waiting/order-contract.js';
import { describePermits } from '../../waiting/permits-contract.js';
import { describeStore } from '../../waiting/store-contract.js';
import { storeActor } from '../store-actor.js';

// Each of them has a queue, so it keeps the order too.
for (const name of ['sentinel', 'valkey'] as const) {
  const { start, unavailable } = TOPOLOGIES[name];
  describeWithGroup<RedisGroup>(
    `RedisStore on ${name}`,
    start,
    (group) => {
      const make = (process?: string) => {
        const { site, nodes } = group();
        const connectionName = randomUUID();
        const { redis } = connectTo(site, { connectionName });
        const servers = nodes.map(({ url }) => url);
        return storeActor(redis as Redis, process === undefined ? {} : { name: process }, { servers, connectionName });
      };
      describeStore(name, make);
      describeOrder(name, make);
      describePermits(name, make);
    },
    unavailable(),
  );
}
