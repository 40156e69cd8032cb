import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { ClusterClient } from '../../src/redis/client.js';
import { RedisStore } from '../../src/redis/store.js';
import { PREFIX } from '../lease/actors.js';
import { startCluster } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { CLASSIC, everything, FOR_CLUSTER, FOR_LIST, RIGHTS, refusedTo, SHARDED } from './rights.js';

const BASE = [...RIGHTS.filter((right) => !CLASSIC.includes(right)), ...FOR_LIST];

describeWithGroup('a user of a Cluster with the rights of the README', startCluster, (cluster) => {
  /** Everything, as a user with these rights on all nodes; what any of them refused. */
  async function refused(rights: readonly string[]): Promise<string[]> {
    const { nodes } = cluster();
    const name = `shop-${randomUUID()}`;
    const admins = nodes.map(({ url }) => new Redis(url));
    onTestFinished(() => admins.forEach((admin) => void admin.disconnect()));
    await Promise.all(admins.map((admin) => admin.call('ACL', 'SETUSER', name, 'on', '>password', ...rights)));
    const login = { username: name, password: 'password', commandTimeout: 1_000 };
    await everything(() => {
      const client = new Cluster(
        nodes.map(({ host, port }) => ({ host, port })),
        { clusterRetryStrategy: () => null, redisOptions: login },
      );
      client.on('error', () => {});
      onTestFinished(() => client.disconnect());
      return new RedisStore(client as unknown as ClusterClient, { keyPrefix: PREFIX, commandTimeout: 1_000 }, () => {});
    });
    return (await Promise.all(admins.map((admin) => refusedTo(name, admin)))).flat();
  }

  test('is refused nothing', async () => {
    expect([SHARDED.length, CLASSIC.length, FOR_CLUSTER.length]).toEqual([4, 4, 3]);
    expect(await refused([...BASE, ...SHARDED, ...FOR_CLUSTER])).toEqual([]);
  });

  // ASKING is sent while a slot moves.
  test.each([...SHARDED, ...FOR_CLUSTER].filter((right) => right !== '+asking'))('and needs %s', async (right) => {
    const less = [...BASE, ...SHARDED, ...FOR_CLUSTER].filter((each) => each !== right);
    expect(await refused(less)).toContain(right.slice(1));
  });
});
