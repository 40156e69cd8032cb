import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { ClusterClient } from '../../src/redis/client.js';
import { RedisStore } from '../../src/redis/store.js';
import { startCluster } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { PREFIX } from '../waiting/actors.js';
import { CLUSTER_RIGHTS, everything, FOR_LIST, RIGHTS, refusedTo } from './rights.js';

const ALL = [...CLUSTER_RIGHTS, ...FOR_LIST];
/** What one server does not ask for. */
const OWN = CLUSTER_RIGHTS.filter((right) => !RIGHTS.includes(right));

describeWithGroup('a user of a Cluster with the rights of docs/rights.md', startCluster, (cluster) => {
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
    expect(OWN).toHaveLength(7);
    expect(await refused(ALL)).toEqual([]);
  });

  // ASKING is sent while a slot moves.
  test.each(OWN.filter((right) => right !== '+asking'))('and needs %s', async (right) => {
    expect(await refused(ALL.filter((each) => each !== right))).toContain(right.slice(1));
  });
});
