import { expect, inject, test } from 'vitest';
import { refusedWrite } from '../../support/refused-write.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { as, askedLines, Operator, PASSWORD } from '../operator.js';

describeWithShop('top, where stdout is no terminal', () => {
  const shop = new Shop();

  test('prints the keys once, the hottest first, with the transaction at work', async () => {
    const operator = new Operator(shop);
    const prisma = operator.client();
    await prisma.$withLock('top-stock:1', () => {});
    await using _handle = await prisma.$lock('top-order:1');
    const [inside, goOn] = [gate(), gate()];
    const working = prisma.$withLock('top-stock:1', async (tx) => {
      await tx.$queryRaw`SELECT 1`;
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    let isHot = true;
    const heating = (async () => {
      while (isHot) await prisma.$withLock('top-hot:1', () => new Promise((resolve) => setTimeout(resolve, 5)));
    })();
    const { json, code } = await operator.run('top', '--json', '--interval', '1');
    isHot = false;
    goOn.open();
    await Promise.all([heating, working]);
    expect(code).toBe(0);
    expect(json).toMatchObject({
      command: 'top',
      ok: true,
      keys: [
        { key: 'top-hot:1', turnsPerSecond: expect.any(Number) },
        { key: 'top-order:1', holder: expect.any(String), turnsPerSecond: 0, transaction: null },
        { key: 'top-stock:1', waiting: 0, transaction: { state: 'idle in transaction', age: expect.any(Number) } },
      ],
    });
    const [hot] = json['keys'] as [{ turnsPerSecond: number }];
    expect(hot.turnsPerSecond).toBeGreaterThan(1);
  });

  test('prints the last refused writes, with their process and time, and all of the last hour with --json', async () => {
    const operator = new Operator(shop);
    const { id } = await shop.product(10);
    const key = 'top-refused:1';
    await refusedWrite(operator.client({ name: 'web 1' }), operator.client(), id, key);
    const redis = shop.redis();
    await expect.poll(() => redis.llen(`${operator.keyPrefix}fenced-lock-refusals`)).toBe(1);
    // What is no entry of this package is left out.
    await redis.rpush(`${operator.keyPrefix}fenced-lock-refusals`, 'nonsense', '1 {}', '1 null', '1 {');
    const [{ out }, { json }] = [
      await operator.run('top', '--interval', '0.2'),
      await operator.run('top', '--interval', '0.2', '--json'),
    ];
    expect(out.trimEnd().split('\n').at(-1)).toMatch(
      new RegExp(`^Refused \\d\\d:\\d\\d:\\d\\dZ ${key} by "web 1": A row of Stock carries .*was refused\\.$`),
    );
    expect(json['refused']).toEqual([
      {
        at: expect.stringMatching(/Z$/),
        key,
        token: expect.stringMatching(/^\d+$/),
        process: 'web 1',
        text: expect.stringContaining('A row of Stock carries the token'),
      },
    ]);
  });

  test('a Redis user that may not read refused writes sees the keys, and that they are not known', async () => {
    const operator = new Operator(shop);
    await using _one = await operator.client().$lock('top-stock:1');
    const admin = shop.redis();
    await admin.call('ACL', 'SETUSER', 'cli-top', 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all', '-time');
    const env = { REDIS_URL: as(inject('redis').url ?? '', 'cli-top') };
    const { code, json } = await operator.runWith(env, 'top', '--interval', '0.2', '--json');
    await admin.call('ACL', 'DELUSER', 'cli-top');
    expect(code).toBe(0);
    expect(json).toMatchObject({ keys: [{ key: 'top-stock:1' }], refused: null });
  });

  test('says so where nobody has a key, and refuses an interval that is none', async () => {
    const operator = new Operator(shop);
    expect(await operator.run('top', '--interval', '0.2')).toMatchObject({
      code: 0,
      out: `${askedLines()}No key is held or waited for.\n`,
    });
    for (const interval of ['0', '', 'soon', '61']) {
      expect(await operator.run('top', '--interval', interval)).toMatchObject({ code: 2 });
    }
  });

  test('does not call whoever a key is offered to its holder', async () => {
    const operator = new Operator(shop);
    const redis = shop.redis();
    const [offered, older] = ['top-stock:1', 'top-stock:2'].map((key) => `${operator.keyPrefix}{${key}}:lease`);
    await redis.set(older ?? '', 'somebody 60000', 'PX', 60_000);
    // As the store makes an offer, again and again: each ends by itself.
    let stands = true;
    const offering = (async () => {
      while (stands) {
        await redis.set(offered ?? '', 'next 1000', 'PX', 1_000);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const { out } = await operator.run('top', '--interval', '0.2');
    stands = false;
    await offering;
    const lines = out.trimEnd().split('\n').slice(3);
    expect(lines.map((line) => line.split(/ {2,}/)[5]).toSorted()).toEqual(['passing on', 'somebody']);
  });

  test('shows only keys that the filter names, also of refused writes', async () => {
    const operator = new Operator(shop);
    const prisma = operator.client();
    await using _one = await prisma.$lock('top-order:1');
    await using _other = await prisma.$lock('top-stock:1');
    const { out } = await operator.run('top', '--interval', '0.2', '--filter', 'stock:');
    const [, , head = '', ...lines] = out.trimEnd().split('\n');
    expect(head.split(/ {2,}/)).toEqual(['KEY', 'TURNS/S', 'WAITING', 'LEASE LEFT', 'TRANSACTION', 'HOLDER', 'NEXT']);
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['top-stock:1']);
    const none = await operator.run('top', '--interval', '0.2', '--filter', 'seat:');
    expect(none.out).toBe(`${askedLines()}No key matches.\n`);
    const { id } = await shop.product(10);
    await refusedWrite(operator.client(), operator.client(), id, 'top-stock:3');
    await expect.poll(() => shop.redis().llen(`${operator.keyPrefix}fenced-lock-refusals`)).toBe(1);
    const refusedOf = async (filter: string) => {
      const args = ['top', '--interval', '0.2', '--filter', filter];
      const [text, document] = [await operator.run(...args), await operator.run(...args, '--json')];
      return [text.out.includes('Refused '), (document.json['refused'] as unknown[]).length];
    };
    expect([await refusedOf('stock:3'), await refusedOf('order:')]).toEqual([
      [true, 1],
      [false, 0],
    ]);
  });
});
