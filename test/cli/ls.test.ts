import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { createDatabase } from './database.js';
import { Operator } from './operator.js';

describeWithShop('ls', () => {
  const shop = new Shop();

  test('shows thousands of keys in their order, with their tokens, and none of another prefix', async () => {
    const operator = new Operator(shop);
    const redis = shop.redis();
    const some = Array.from({ length: 5_000 }, (_, n) => `stock:${String(n).padStart(4, '0')}`);
    await operator.client().$withLock('stock:3210', () => {});
    const pipeline = redis.pipeline();
    for (const key of some) {
      pipeline.set(`${operator.keyPrefix}{${key}}:lease`, randomUUID(), 'PX', 60_000);
      pipeline.set(`${operator.keyPrefix}other:{${key}}:lease`, randomUUID(), 'PX', 60_000);
    }
    await pipeline.exec();
    const { json, out } = await operator.run('ls', '--json');
    const keys = json['keys'] as Array<{ key: string; token: string | null }>;
    expect(keys.map(({ key }) => key)).toEqual(some);
    expect(keys.filter(({ token }) => token !== null)).toMatchObject([{ key: 'stock:3210' }]);
    expect(out).not.toContain('other');
  });

  test('finds the keys of an ioredis client that has a prefix of its own', async () => {
    const operator = new Operator(shop);
    const redis = shop.redis();
    redis.options.keyPrefix = 'shop?[1]:';
    await using _ = await operator.client({ redis }).$lock('stock:1');
    const url = `${inject('redis').url}?keyPrefix=${encodeURIComponent('shop?[1]:')}`;
    expect((await operator.run('ls', '--json', '--redis-url', url)).json).toMatchObject({ keys: [{ key: 'stock:1' }] });
    expect((await operator.run('ls', '--json')).json).toMatchObject({ keys: [] });
  });

  test('says what keeps a database from giving locks, and what to do, also where no key is held', async () => {
    const operator = new Operator(shop);
    await using database = await createDatabase(undefined, new URL(inject('postgres').app).username);
    const url = Object.assign(new URL(inject('postgres').app), { pathname: `/${database.name}` }).href;
    const { json } = await operator.runWith({ DATABASE_URL: url }, 'ls', '--json');
    expect(json).toMatchObject({
      ok: true,
      keys: [],
      warning: expect.stringMatching(/^No lock can .* fenced-lock init/),
    });
    await using _held = await operator.client().$lock('stock:1');
    const refused = async () => (await operator.runWith({ DATABASE_URL: url }, 'ls')).err;
    expect(await refused()).toContain('npx fenced-lock init');
    await applyMigrations(database.url);
    await database.pool.query('REVOKE USAGE ON SCHEMA fenced_lock FROM PUBLIC');
    expect(await refused()).toContain('does not let this role use the schema fenced_lock or an object in it');
    await database.pool.query('GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC; DROP FUNCTION fenced_lock.last_admission');
    expect(await refused()).toContain('lacks objects of fenced_lock');
  });
});
