import { Cluster } from 'ioredis';
import { expect, test } from 'vitest';
import { connectTo } from '../support/redis-site.js';
import { askServer, type RedisServer, startCluster } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';
import { as, Operator, PASSWORD } from './operator.js';
import { findings } from './patient.js';

describeWithShop('the command', () => {
  const shop = new Shop();

  describeWithGroup('with the URL of one node of a Cluster', startCluster, (cluster) => {
    test('ls shows the keys of all masters, and unlock takes each from whoever has it', async () => {
      const { redis, close } = connectTo(cluster().site);
      shop.closeLater(close);
      const operator = new Operator(shop);
      const client = operator.client({ redis: redis as Exclude<typeof redis, unknown[]> });
      const keys = ['stock:1', 'stock:2', 'stock:3', 'stock:4', 'stock:5', 'stock:6'];
      const handles = await Promise.all(keys.map((key) => client.$lock(key)));
      for (const { url } of cluster().nodes) {
        const { json } = await operator.runWith({ REDIS_URL: url }, 'ls', '--json');
        expect((json['keys'] as Array<{ key: string }>).map(({ key }) => key)).toEqual(keys);
      }
      const env = { REDIS_URL: cluster().nodes[0]?.url as string };
      for (const key of keys) {
        expect(await operator.runWith(env, 'unlock', key)).toMatchObject({ code: 0 });
        expect((await client.$locks.inspect(key)).holder).toBeUndefined();
      }
      await Promise.allSettled(handles.map((handle) => handle.release()));
    });

    test('the rest of the URL is heeded: the prefix that the client of the application has, and its login', async () => {
      const { nodes } = cluster();
      const user = ['ACL', 'SETUSER', 'cli-cluster', 'reset', 'on', `>${PASSWORD}`, '~app:*', '&*', '+@all'] as const;
      await Promise.all(nodes.map(({ url }) => askServer(url, ...user)));
      const redis = new Cluster(
        nodes.map(({ host, port }) => ({ host, port })),
        { keyPrefix: 'app:' },
      );
      shop.closeLater(() => redis.disconnect());
      const operator = new Operator(shop);
      const client = operator.client({ redis });
      const handle = await client.$lock('stock:2');
      const url = `${as(nodes[0]?.url as string, 'cli-cluster')}?keyPrefix=app:`;
      const { json } = await operator.runWith({ REDIS_URL: url }, 'ls', '--json');
      expect(json).toMatchObject({ keys: [{ key: 'stock:2', holder: expect.any(String) }] });
      const ran = await operator.runWith({ REDIS_URL: url }, 'unlock', 'stock:2', '--json');
      expect(ran).toMatchObject({ code: 0, json: { leaseTaken: true } });
      expect((await client.$locks.inspect('stock:2')).holder).toBeUndefined();
      await Promise.all(nodes.map(({ url }) => askServer(url, 'ACL', 'DELUSER', 'cli-cluster')));
      await handle.release().catch(() => {});
    });

    test('doctor finds, and says where it is, what one master alone has', async () => {
      const { nodes } = cluster();
      const user = ['ACL', 'SETUSER', 'cli-doctor', 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all'] as const;
      await Promise.all(nodes.map(({ url }) => askServer(url, ...user)));
      for (const [index, { url, host, port }] of nodes.slice(0, 3).entries()) {
        await askServer(url, 'ACL', 'SETUSER', 'cli-doctor', '-evalsha', '-eval');
        await askServer(url, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
        const env = { REDIS_URL: as(nodes[(index + 1) % 3]?.url as string, 'cli-doctor') };
        const ran = await new Operator(shop).runWith(env, 'doctor', '--json');
        const wrong = findings(ran).filter(({ server, status }) => server === 'redis' && status !== 'ok');
        const node = `${host}:${port}`;
        expect(wrong).toMatchObject([
          { check: 'eviction', status: 'warning', node },
          { check: 'scripts', status: 'fault', node },
        ]);
        await askServer(url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
        await askServer(url, 'ACL', 'SETUSER', 'cli-doctor', '+@all');
      }
      await Promise.all(nodes.map(({ url }) => askServer(url, 'ACL', 'DELUSER', 'cli-doctor')));
    });

    test('with a master down ls fails and names the Cluster, and doctor the master', async () => {
      const [down, other] = cluster().nodes as [RedisServer, RedisServer];
      await down.killHard();
      const env = { REDIS_URL: other.url };
      expect(await new Operator(shop).runWith(env, 'ls')).toMatchObject({
        code: 1,
        err: expect.stringMatching(/Redis at/),
      });
      const found = findings(await new Operator(shop).runWith(env, 'doctor', '--json'));
      const message = expect.stringContaining(`Redis at ${down.host}:${down.port} cannot be reached`);
      expect(found).toContainEqual(expect.objectContaining({ check: 'connection', status: 'fault', message }));
    });
  });
});
