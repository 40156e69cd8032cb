import type { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { connectTo } from '../support/redis-site.js';
import { askServer, startQuorum, startRedis } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';
import { Operator } from './operator.js';
import { findings } from './patient.js';

describeWithShop('the command', () => {
  const shop = new Shop();

  describeWithGroup(
    'with the URLs of independent nodes',
    () => startQuorum(3),
    (group) => {
      const urls = () => group().nodes.flatMap(({ url }) => ['--redis-url', url]);

      async function held(key: string) {
        const { redis, close } = connectTo(group().site);
        shop.closeLater(close);
        const operator = new Operator(shop);
        const handle = await operator.client({ redis: redis as Redis[] }).$lock(key);
        const leases = () =>
          Promise.all(group().nodes.map(({ url }) => askServer(url, 'EXISTS', `${operator.keyPrefix}{${key}}:lease`)));
        await expect.poll(leases).toEqual([1, 1, 1]);
        return { operator, handle, leases };
      }

      test('ls shows who has a key on most of them, and unlock takes it from all', async () => {
        const { operator, handle, leases } = await held('stock:1');
        await askServer(group().nodes[0]?.url as string, 'DEL', `${operator.keyPrefix}{stock:1}:lease`);
        const { json } = await operator.run('ls', '--json', ...urls());
        expect(json).toMatchObject({ keys: [{ key: 'stock:1', holder: expect.any(String) }] });
        const unlocked = await operator.run('unlock', 'stock:1', '--json', ...urls());
        expect(unlocked).toMatchObject({ code: 0, json: { leaseTaken: true } });
        expect(await leases()).toEqual([0, 0, 0]);
        await handle.release().catch(() => {});
      });

      test('doctor looks at each; the same node twice is a misuse', async () => {
        const found = findings(await new Operator(shop).run('doctor', '--json', ...urls()));
        const rehearsed = found.filter(({ server, check }) => server === 'redis' && check === 'scripts');
        expect(rehearsed).toMatchObject([{ status: 'ok' }, { status: 'ok' }, { status: 'ok' }]);
        const { code, err } = await new Operator(shop).run('ls', ...urls().slice(0, 2), ...urls().slice(0, 2));
        expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('twice') });
      });

      test('a minority may be away, and a majority may not', async () => {
        const { operator, handle, leases } = await held('stock:3');
        const [a, b] = group().nodes;
        await a?.killHard();
        const gone = `Redis at 127.0.0.1:${a?.port} cannot be reached: .* The other nodes decide`;
        const unlocked = await operator.run('unlock', 'stock:3', '--json', ...urls());
        expect(unlocked).toMatchObject({ code: 0, err: expect.stringMatching(gone), json: { leaseTaken: true } });
        await b?.killHard();
        const refused = await operator.run('unlock', 'stock:3', '--json', ...urls());
        expect(refused).toMatchObject({ code: 1, json: { ok: false } });
        expect(refused.err).toMatch(new RegExp(`${a?.port} cannot be reached: .*${b?.port} cannot be reached`));
        await Promise.all([a?.start(), b?.start()]);
        expect(await leases()).toEqual([0, 0, 0]);
        await handle.release().catch(() => {});
      });
    },
  );

  test('a node of a Cluster is none of them', async () => {
    await using cluster = await clusterNode();
    const args = ['--redis-url', cluster.url, '--redis-url', inject('redis').url ?? ''];
    const { code, err } = await new Operator(shop).run('ls', ...args);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/is a node of a Cluster: give --redis-url once/),
    });
  });
});

async function clusterNode() {
  const node = await startRedis({ args: ['--cluster-enabled', 'yes'] });
  return { url: node.url, [Symbol.asyncDispose]: () => node.stop() };
}
