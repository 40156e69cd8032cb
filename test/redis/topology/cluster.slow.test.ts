import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import { startCluster } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { describeOrder } from '../../waiting/order-contract.js';
import { describePermits } from '../../waiting/permits-contract.js';
import { describeStore } from '../../waiting/store-contract.js';
import { storeActor } from '../store-actor.js';
import type { ClientOptions } from './cluster-actor.js';

const SETTINGS: Record<string, ClientOptions> = {
  RESP3: { redisOptions: { protocol: 3 } },
  RESP2: { redisOptions: { protocol: 2 } },
  // What an application may have set for its own use of the client.
  'lazy, with a prefix that decides on the slot, a time limit and automatic pipelines': {
    lazyConnect: true,
    keyPrefix: '{app}:',
    enableAutoPipelining: true,
    scaleReads: 'slave',
    redisOptions: { commandTimeout: 5_000 },
  },
};

describeWithGroup('RedisStore on a Cluster', startCluster, (cluster) => {
  for (const [name, options] of Object.entries(SETTINGS)) {
    const makeActor = (process?: string) => {
      const { nodes } = cluster();
      const connectionName = randomUUID();
      const redis = new Cluster(
        nodes.map(({ host, port }) => ({ host, port })),
        { ...options, redisOptions: { ...options.redisOptions, connectionName } },
      );
      const servers = nodes.map(({ url }) => url);
      return storeActor(redis, process === undefined ? {} : { name: process }, { servers, connectionName });
    };
    describeStore(name, makeActor);
    describeOrder(name, makeActor);
    describePermits(name, makeActor);
  }
});
