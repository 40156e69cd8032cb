import { expect, inject, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { createDatabase } from './database.js';
import { asked, askedLines, Operator } from './operator.js';

describeWithShop('the servers that a command asks', () => {
  const shop = new Shop();
  const FROM = { postgres: 'DATABASE_URL in the environment', redis: 'REDIS_URL in the environment' };

  test.each([['ls'], ['unlock', 'stock:never'], ['unlock', 'stock:never', '--dry-run']])(
    'are named first, without the user and the password: %s',
    async (...args) => {
      const operator = new Operator(shop);
      const given = args.filter((arg) => arg !== undefined);
      const { out, code } = await operator.run(...given);
      expect({ code, first: out.split('\n').slice(0, 2).join('\n') }).toEqual({
        code: 0,
        first: askedLines().trimEnd(),
      });
      const { username, password } = new URL(inject('postgres').app);
      expect(out).not.toContain(`${username}@`);
      expect(out).not.toMatch(/:\/\//);
      if (password !== '') expect(out).not.toContain(password);
      const { json } = await operator.run(...given, '--json');
      expect(json['servers']).toEqual({
        postgres: { address: asked().postgres, from: FROM.postgres },
        redis: { address: asked().redis, from: FROM.redis },
      });
    },
  );

  test('are named with the places of their URLs where these differ, and without them where they do not', async () => {
    const operator = new Operator(shop);
    const [database, redis] = [inject('postgres').app, inject('redis').url ?? ''];
    const { postgres } = asked();
    const differing = await operator.run('ls', '--database-url', database);
    expect(differing.out).toContain(`postgres   ${postgres} (from --database-url)\n`);
    expect(differing.out).toContain(`redis      ${asked().redis} (from REDIS_URL in the environment)\n`);
    const other = await operator.run('unlock', 'stock:never', '--redis-url', redis);
    expect(other.out).toContain(`postgres   ${postgres} (from DATABASE_URL in the environment)\n`);
    expect(other.out).toContain(`redis      ${asked().redis} (from --redis-url)\n`);
    for (const args of [[], ['--database-url', database, '--redis-url', redis]]) {
      expect((await operator.run('ls', ...args)).out).not.toContain('(from');
    }
  });

  test('unlock says in its result what it did in which', async () => {
    const operator = new Operator(shop);
    const { key } = await shop.product(1);
    await operator.client().$withLock(key, () => {});
    const { out } = await operator.run('unlock', key);
    expect(out).toContain(`  In PostgreSQL ${asked().postgres}: no transaction was in the way; the token was `);
    expect(out).toContain(`  In Redis ${asked().redis}: there was no lease.\n`);
  });

  test('unlock in another Redis than that of the application: it says so, and names that one', async () => {
    const operator = new Operator(shop);
    const { key } = await shop.product(1);
    // The first transaction of a key is not seen before it has committed.
    await operator.client().$withLock(key, () => {});
    const [inside, goOn] = [gate(), gate()];
    const end = operator
      .client()
      .$withLock(key, async () => {
        inside.open();
        await goOn.opened;
      })
      .catch((error: unknown) => error);
    await inside.opened;
    const elsewhere = Object.assign(new URL(inject('redis').url ?? ''), { pathname: '/15' }).href;
    const rehearsed = await operator.run('unlock', key, '--redis-url', elsewhere, '--dry-run');
    const { out } = await operator.run('unlock', key, '--redis-url', elsewhere);
    goOn.open();
    expect(rehearsed.out).toMatch(/this is not the Redis of the application.*\nNothing was changed\.\n$/s);
    expect(out).toContain(`redis      ${asked().redis}/15 (from --redis-url)\n`);
    expect(out).toMatch(/: backend \d+ was ended; /);
    expect(out).toContain(`  In Redis ${asked().redis}/15: there was no lease.\n`);
    expect(out).toMatch(/this is not the Redis of the application, or the application has another --key-prefix\.\n$/);
    expect(await end).toMatchObject({ code: 'TRANSACTION_ABORTED', message: expect.stringContaining('57P01') });
  });

  test('unlock in another database than that of the application: it says so, and names that one', async () => {
    const operator = new Operator(shop);
    await using database = await createDatabase();
    await applyMigrations(database.url);
    const { key } = await shop.product(1);
    const handle = await operator.client().$lock(key, { leaseTime: 60_000 });
    const elsewhere = [key, '--json', '--database-url', database.url];
    const rehearsed = await operator.run('unlock', ...elsewhere, '--dry-run');
    const { json, out } = await operator.run('unlock', ...elsewhere);
    expect(rehearsed.json['warning']).toBe(json['warning']);
    expect(json).toMatchObject({
      leaseTaken: true,
      servers: { postgres: { address: expect.stringContaining(`/${database.name}`), from: '--database-url' } },
      warning: expect.stringContaining('this is not the database of the application'),
    });
    expect(out).not.toMatch(/:\/\//);
    await handle.release();
  });
});
