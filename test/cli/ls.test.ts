import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { expect, inject, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { createDatabase } from './database.js';
import { as, askedLines, HOSTILE, isHarmless, Operator, PASSWORD } from './operator.js';

const PLAIN_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describeWithShop('ls', () => {
  const shop = new Shop();

  test('says so where nobody has a key', async () => {
    const operator = new Operator(shop);
    await operator.client().$withLock('stock:1', () => {});
    expect(await operator.run('ls')).toMatchObject({
      code: 0,
      out: `${askedLines()}No key is held or waited for.\n`,
    });
    expect((await operator.run('ls', '--json')).json).toMatchObject({ command: 'ls', ok: true, keys: [] });
  });

  test('shows each key with its holder, who waits, its token and the transaction', async () => {
    const operator = new Operator(shop);
    // Other files use the same database.
    const [one, two] = [`1:${randomUUID()}`, `2:${randomUUID()}`];
    const [holder, waiting] = [operator.client(), operator.client({ name: 'web 2' })];
    const before = await holder.$withLock(two, (_, { token }) => String(token));
    await using handle = await holder.$lock(one);
    const [inside, goOn] = [gate<number>(), gate()];
    const working = holder.$withLock(two, async (tx) => {
      const [own] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
      inside.open(own?.pid ?? 0);
      await goOn.opened;
    });
    const pid = await inside.opened;
    const next = waiting.$withLock(two, () => {});
    await expect.poll(async () => (await waiting.$locks.inspect(two)).waiting).toBe(1);

    const { json } = await operator.run('ls', '--json');
    const states = await holder.$locks.list();
    expect(json['keys']).toEqual(
      states
        .toSorted((one, other) => (one.key < other.key ? -1 : 1))
        .map(({ key, holder, process, waiting, waiters, token, turns, admittedAt, transaction }) => ({
          key,
          holder,
          process,
          expiresIn: expect.any(Number),
          waiting,
          waiters,
          token: String(token),
          turns: String(turns),
          admittedAt: admittedAt?.toISOString(),
          transaction: transaction === undefined ? null : { pid, since: transaction.since.toISOString() },
        })),
    );
    expect(json['keys']).toMatchObject([
      { key: one, token: String(handle.token), waiting: 0, transaction: null },
      {
        key: two,
        waiting: 1,
        waiters: ['web 2'],
        transaction: { pid, since: expect.stringMatching(PLAIN_TIME) },
      },
    ]);

    const { out, code } = await operator.run('ls');
    const [, , head = '', ...lines] = out.trimEnd().split('\n');
    expect({ code, head: head.split(/ {2,}/) }).toEqual({
      code: 0,
      head: [
        ...['KEY', 'PROCESS', 'HOLDER', 'EXPIRES IN', 'WAITING', 'LAST TOKEN', 'LAST ADMITTED', 'TRANSACTION NOW'],
        'WHO WAITS',
      ],
    });
    const cells = lines.map((line) => line.split(/ {2,}/));
    expect(cells).toEqual([
      [
        one,
        `${hostname()}:${process.pid}`,
        expect.any(String),
        expect.stringMatching(/^\d+\.\d s$/),
        '0',
        String(handle.token),
        expect.stringMatching(PLAIN_TIME),
        '-',
        '-',
      ],
      [
        two,
        `${hostname()}:${process.pid}`,
        expect.any(String),
        expect.stringMatching(/^\d+\.\d s$/),
        '1',
        // That of the turn before.
        before,
        expect.stringMatching(PLAIN_TIME),
        expect.stringContaining(`${pid} since 2`),
        '"web 2"',
      ],
    ]);
    goOn.open();
    await Promise.all([working, next]);
  });

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

  test('shows a name of a process that would deceive as JSON, and "-" for a lease without one', async () => {
    const operator = new Operator(shop);
    const redis = shop.redis();
    const names = ['worker 7', 'a\u202eb', '\u001b[31mred', '(none) 5000'];
    for (const [at, name] of names.entries()) {
      await redis.set(`${operator.keyPrefix}{stock:${at}}:lease`, `${randomUUID()} ${name} 60000`, 'PX', 60_000);
    }
    await redis.set(`${operator.keyPrefix}{stock:9}:lease`, `${randomUUID()} 60000`, 'PX', 60_000);
    const [text, document] = [await operator.run('ls'), await operator.run('ls', '--json')];
    expect([isHarmless(text.out), isHarmless(document.out)]).toEqual([true, true]);
    const shown = document.json['keys'] as Array<{ process: string | null }>;
    expect(shown.map(({ process }) => process)).toEqual([...names, null]);
    const lines = text.out.trimEnd().split('\n').slice(3);
    expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual([
      '"worker 7"',
      '"a\\u202eb"',
      '"\\u001b[31mred"',
      '"(none) 5000"',
      '-',
    ]);
  });

  test('names the first who wait, as JSON if the name would deceive, "?" where there is none, and counts the others', async () => {
    const operator = new Operator(shop);
    const redis = shop.redis();
    const queue = `${operator.keyPrefix}{stock:1}:queue`;
    const names = ['web-1', 'a\u202eb', '\u001b[31mred', '', 'web-5'];
    // The one without a name is an entry as older versions wrote it; the last one is none of this package.
    const places = names.map((name) => `${randomUUID()} ${randomUUID()}${name === '' ? '' : ` ${name}`}`);
    await redis.rpush(queue, ...places, 'nonsense');
    await redis.pexpire(queue, 60_000);
    const [text, document] = [await operator.run('ls'), await operator.run('ls', '--json')];
    expect([isHarmless(text.out), isHarmless(document.out)]).toEqual([true, true]);
    expect(document.json['keys']).toMatchObject([
      { waiting: 6, waiters: ['web-1', 'a\u202eb', '\u001b[31mred', null, 'web-5', null] },
    ]);
    expect(text.out.trimEnd()).toMatch(/ {2}web-1, "a\\u202eb", "\\u001b\[31mred", 3 more$/);
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

  test('a Redis user that may not do it is told so', async () => {
    const operator = new Operator(shop);
    const admin = shop.redis();
    await admin.call('ACL', 'SETUSER', 'cli-ls', 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all', '-scan');
    const { code, err, out } = await operator.runWith({ REDIS_URL: as(inject('redis').url ?? '', 'cli-ls') }, 'ls');
    await admin.call('ACL', 'DELUSER', 'cli-ls');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^fenced-lock: Redis at .*: NOPERM .*scan/) });
    expect(out + err).not.toMatch(/secret-of-locks|:\/\//);
  });

  test.each([
    ['no objects', '', 'npx fenced-lock init'],
    [
      'no right to them',
      'REVOKE USAGE ON SCHEMA fenced_lock FROM PUBLIC',
      'may not use the schema fenced_lock or an object in it',
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

  test('a database that is not there is what the server says, and not that the server is out of reach', async () => {
    const url = Object.assign(new URL(inject('postgres').app), { pathname: '/not_there' }).href;
    const { code, err } = await new Operator(shop).runWith({ DATABASE_URL: url }, 'ls');
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /\/not_there refuses the connection: database "not_there" does not exist\. Create the database, or/,
      ),
    });
  });

  test.each([
    ['REDIS_URL', /Which Redis\? Set REDIS_URL \(redis:\/\/<host>:<port>\)/],
    [
      'DATABASE_URL',
      /Which database\? .* It is postgresql:\/\/<user>:<password>@<host>:<port>\/<database>: your provider .* shows it/,
    ],
  ])('asks for %s, and says where it comes from', async (name, question) => {
    expect(await new Operator(shop).runWith({ [name]: '' }, 'ls')).toMatchObject({
      code: 1,
      err: expect.stringMatching(question),
    });
  });
});
