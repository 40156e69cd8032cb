import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { startSentinelGroup } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';
import { Operator } from './operator.js';
import { findings } from './patient.js';

describeWithShop('a Redis URL', () => {
  const shop = new Shop();
  test('with a database that the server does not have is refused, whatever would be done in another one', async () => {
    const key = `stock:${randomUUID()}`;
    const operator = new Operator(shop);
    const client = operator.client();
    await using handle = await client.$lock(key);
    const env = { REDIS_URL: `${inject('redis').url}/99999` };
    const message = expect.stringMatching(/Redis at \S+: ERR .*(DB|database) index/i);
    for (const command of [['ls'], ['unlock', key]]) {
      expect(await operator.runWith(env, ...command)).toMatchObject({ code: 1, err: message });
    }
    expect((await client.$locks.inspect(key)).token).toBe(handle.token);
    const found = findings(await operator.runWith(env, 'doctor', '--json'));
    expect(found.filter(({ server }) => server === 'redis')).toMatchObject([{ check: 'connection', message }]);
  });

  describeWithGroup('of a Sentinel', startSentinelGroup, (group) => {
    test('is refused, with the way to the primary', async () => {
      const { site } = group();
      if (site.kind !== 'sentinel') throw new Error('no Sentinels');
      const [one = '', other = ''] = site.sentinels.map(({ host, port }) => `redis://${host}:${port}`);
      const message = expect.stringMatching(/is a Sentinel, .* SENTINEL get-master-addr-by-name/);
      for (const command of [['ls'], ['ls', '--redis-url', one, '--redis-url', other]]) {
        const ran = await new Operator(shop).runWith({ REDIS_URL: one }, ...command);
        expect(ran).toMatchObject({ code: 1, err: message });
      }
      const found = findings(await new Operator(shop).runWith({ REDIS_URL: one }, 'doctor', '--json'));
      expect(found).toContainEqual(expect.objectContaining({ check: 'connection', status: 'fault', message }));
    });
  });
});
