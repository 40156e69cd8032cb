import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { createDatabase } from './database.js';
import { HOSTILE, isHarmless, Operator } from './operator.js';

describeWithShop('ls', () => {
  const shop = new Shop();

  test('shows keys that would deceive in a line each, and as they are with --json', async () => {
    const operator = new Operator(shop);
    const keys = HOSTILE.map(([, key]) => key);
    const client = operator.client();
    const handles = await Promise.all(keys.map((key) => client.$lock(key)));
    const [text, document] = [await operator.run('ls'), await operator.run('ls', '--json')];
    for (const handle of handles) await handle.release();
    expect(text.out.trimEnd().split('\n')).toHaveLength(3 + keys.length);
    expect([isHarmless(text.out), isHarmless(document.out)]).toEqual([true, true]);
    const shown = document.json['keys'] as Array<{ key: string; token: string }>;
    expect(shown.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
    expect(shown.map(({ token }) => BigInt(token)).toSorted()).toEqual(handles.map(({ token }) => token).toSorted());
  });

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

  test.each([
    ['no objects', '', 'npx fenced-lock init'],
    [
      'no right to them',
      'REVOKE USAGE ON SCHEMA fenced_lock FROM PUBLIC',
      'does not let this role use the schema fenced_lock or an object in it',
    ],
    ['not all of them', 'DROP FUNCTION fenced_lock.last_admission', 'lacks objects of fenced_lock'],
  ])('a database with %s', async (_, sql, message) => {
    const operator = new Operator(shop);
    await using held = await operator.client().$lock('stock:1');
    await using database = await createDatabase(undefined, new URL(inject('postgres').app).username);
    if (sql !== '') {
      await applyMigrations(database.url);
      await database.pool.query(sql);
    }
    const url = Object.assign(new URL(inject('postgres').app), { pathname: `/${database.name}` }).href;
    const { code, err } = await operator.runWith({ DATABASE_URL: url }, 'ls');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(message) });
    expect(err).not.toMatch(/:\/\//);
    expect(held.remaining()).toBeGreaterThan(0);
  });

  test('without keys says what keeps the database from giving any, and what to do', async () => {
    const operator = new Operator(shop);
    await using database = await createDatabase(undefined, new URL(inject('postgres').app).username);
    const url = Object.assign(new URL(inject('postgres').app), { pathname: `/${database.name}` }).href;
    const { code, out, err } = await operator.runWith({ DATABASE_URL: url }, 'ls');
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/\nNo key is held or waited for\.\n$/) });
    expect(err).toMatch(/^fenced-lock: No lock can be taken\. .* has no schema fenced_lock: .*npx fenced-lock init/);
    const { json } = await operator.runWith({ DATABASE_URL: url }, 'ls', '--json');
    expect(json).toMatchObject({ ok: true, keys: [], warning: expect.stringContaining('npx fenced-lock init') });
    expect((await operator.run('ls')).err).toBe('');
  });
});
