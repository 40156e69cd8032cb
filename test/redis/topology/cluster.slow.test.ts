import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import type { ClusterClient } from '../../../src/redis/client.js';
import { RedisStore, type RedisStoreOptions } from '../../../src/redis/store.js';
import { eventually } from '../../support/eventually.js';
import { startCluster } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, PREFIX, queueName } from '../../waiting/actors.js';
import type { StoreActor } from '../../waiting/claims.js';
import { describeOrder } from '../../waiting/order-contract.js';
import { describeStore } from '../../waiting/store-contract.js';
import type { ClientOptions } from './cluster-actor.js';

interface Setting {
  readonly name: string;
  readonly options?: ClientOptions;
  readonly pubsub?: RedisStoreOptions['pubsub'];
}

const SETTINGS: readonly Setting[] = [
  { name: 'RESP3', options: { redisOptions: { protocol: 3 } } },
  { name: 'RESP2', options: { redisOptions: { protocol: 2 } } },
  { name: 'RESP3, classic pub/sub', options: { redisOptions: { protocol: 3 } }, pubsub: 'classic' },
  { name: 'RESP2, classic pub/sub', options: { redisOptions: { protocol: 2 } }, pubsub: 'classic' },
  // What an application may have set for its own use of the client.
  {
    name: 'lazy, with a prefix that decides on the slot, a time limit and automatic pipelines',
    options: {
      lazyConnect: true,
      keyPrefix: '{app}:',
      enableAutoPipelining: true,
      scaleReads: 'slave',
      redisOptions: { commandTimeout: 5_000 },
    },
  },
];

describeWithGroup('RedisStore on a Cluster', startCluster, (cluster) => {
  for (const { name, options = {}, pubsub } of SETTINGS) {
    const makeActor = (process?: string): StoreActor => {
      const { nodes } = cluster();
      const connectionName = randomUUID();
      const redis = new Cluster(
        nodes.map(({ host, port }) => ({ host, port })),
        { ...options, redisOptions: { ...options.redisOptions, connectionName } },
      );
      redis.on('error', () => {});
      const settings = {
        keyPrefix: PREFIX,
        commandTimeout: 10_000,
        ...(pubsub && { pubsub }),
        ...(process && { name: process }),
      };
      const store = new RedisStore(redis as unknown as ClusterClient, settings, () => {});
      const close = () => {
        void store.close();
        redis.disconnect();
      };
      onTestFinished(close);
      const isGone = async () => !(await connectionsOf(nodes)).includes(connectionName);
      return {
        store,
        kill: async () => {
          close();
          await eventually('the servers have noticed', isGone);
        },
        forget: (key) => redis.del(leaseName(key), queueName(key)),
      };
    };
    describeStore(name, makeActor);
    describeOrder(name, makeActor);
  }
});

async function connectionsOf(nodes: readonly { url: string }[]): Promise<string> {
  const lists = nodes.map(async ({ url }) => {
    const admin = new Redis(url);
    const list = String(await admin.client('LIST'));
    admin.disconnect();
    return list;
  });
  return (await Promise.all(lists)).join();
}
