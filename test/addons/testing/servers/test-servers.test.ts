import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import {
  ServerUnavailable,
  setUpTestServers,
  type TestServers,
  testServers,
} from '../../../../src/addons/testing/index.js';
import { startPostgres } from '../../../../src/addons/testing/servers/postgres.js';
import { onPath } from '../../../../src/addons/testing/servers/programs.js';
import { startRedis } from '../../../../src/addons/testing/servers/redis.js';
import { makeTemplate } from '../../../../src/addons/testing/servers/template.js';
import { project } from '../../../cli/project.js';
import { describeWithShop } from '../../../support/shop.js';

/** One statement past everything. */
async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

const stocks = (url: string) => query(url, 'SELECT * FROM "Stock"');
const insert = (url: string) =>
  query(url, `INSERT INTO "Stock" (product, quantity) VALUES ('${randomUUID()}', 3) RETURNING id`);

describeWithShop('servers for the tests of an application', () => {
  let servers: TestServers;
  beforeAll(async () => {
    for (const name of ['DATABASE_URL', 'REDIS_URL']) vi.stubEnv(name, '');
    servers = await testServers({ migrations: undefined, settings: undefined, allowEmulator: undefined });
  });
  afterAll(async () => {
    await servers.stop();
    vi.unstubAllEnvs();
  });

  test('are emptied with the connections that are open, and ids begin anew', async () => {
    const pool = new pg.Pool({ connectionString: servers.databaseUrl });
    await pool.query('SELECT 1');
    const [first] = await insert(servers.databaseUrl);
    await servers.empty();
    expect((await pool.query('SELECT * FROM "Stock"')).rows).toEqual([]);
    expect(await insert(servers.databaseUrl)).toEqual([first]);
    await pool.end();
  });

  test('say which transaction is in the way, where a test has left one open', async () => {
    const url = await servers.createDatabase();
    const [made] = await query(url, `SELECT pg_get_functiondef('fenced_lock_test.empty'::regproc) AS definition`);
    // Nobody waits here for five seconds.
    await query(url, String(made?.['definition']).replace("'5s'", "'50ms'"));
    const left = new pg.Client({ connectionString: url });
    await left.connect();
    await left.query('BEGIN');
    await left.query('UPDATE "Stock"\n  SET quantity = 0');
    const { rows } = await left.query('SELECT pg_backend_pid() AS pid');
    await left.query('UPDATE "Stock"\n  SET quantity = 1');
    const error = await servers.empty().catch((error: Error) => error);
    expect(String(error)).toMatch(/emptied no table/);
    expect(String(error)).toContain(
      `backend ${rows[0].pid} (idle in transaction, for 0 s): UPDATE "Stock" SET quantity = 1`,
    );
    expect(String(error)).toMatch(/Await every call of the test/);
    await left.query('ROLLBACK');
    await servers.empty();
    await left.end();
  });

  /** What migrations have left, what a test does, and what shows whether it has been undone. */
  const KEPT: Record<string, [migration: string, work: string, question: string]> = {
    'with a null of JSON, which is another one than that of SQL': [
      "CREATE TABLE seeded (id int, data jsonb); INSERT INTO seeded VALUES (1, 'null'), (2, NULL)",
      'UPDATE seeded SET data = NULL',
      'SELECT id, data::text FROM seeded ORDER BY id',
    ],
    'in a table that others inherit from': [
      'CREATE TABLE seeded (id int); CREATE TABLE child () INHERITS (seeded); INSERT INTO seeded VALUES (1); INSERT INTO child VALUES (2)',
      'INSERT INTO child VALUES (3)',
      'SELECT tableoid::regclass::text, id FROM seeded ORDER BY id',
    ],
    'in a table with partitions': [
      'CREATE TABLE seeded (id int) PARTITION BY LIST (id); CREATE TABLE part PARTITION OF seeded FOR VALUES IN (1, 2); INSERT INTO seeded VALUES (1)',
      'INSERT INTO seeded VALUES (2)',
      'SELECT * FROM seeded',
    ],
    'with a generated column and an id that is always generated': [
      'CREATE TABLE seeded (id int GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (id * 2) STORED); INSERT INTO seeded DEFAULT VALUES',
      'INSERT INTO seeded DEFAULT VALUES',
      'SELECT * FROM seeded',
    ],
    'in tables that refer to each other': [
      `CREATE TABLE one (id int PRIMARY KEY, other int); CREATE TABLE other (id int PRIMARY KEY, one int REFERENCES one);
       ALTER TABLE one ADD CONSTRAINT back FOREIGN KEY (other) REFERENCES other; INSERT INTO one VALUES (1);
       INSERT INTO other VALUES (2, 1); UPDATE one SET other = 2`,
      'UPDATE one SET other = NULL',
      'SELECT other, condeferrable FROM one, pg_constraint WHERE conname = $$back$$',
    ],
    'at the position of a sequence that a migration has restarted': [
      'CREATE TABLE seeded (id serial); ALTER SEQUENCE seeded_id_seq RESTART WITH 1000',
      'INSERT INTO seeded DEFAULT VALUES',
      'SELECT last_value, is_called FROM seeded_id_seq',
    ],
    'without what a trigger adds to it': [
      `CREATE TABLE seeded (id int); CREATE TABLE log (id int);
       CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END';
       CREATE TRIGGER noted AFTER INSERT ON seeded FOR EACH ROW EXECUTE FUNCTION noted();
       INSERT INTO seeded VALUES (1); TRUNCATE log`,
      'INSERT INTO seeded VALUES (2)',
      'SELECT (SELECT count(*)::int FROM log) AS logged, tgenabled FROM pg_trigger WHERE tgname = $$noted$$',
    ],
    'where a guard refuses who has no token': [
      `CREATE TABLE seeded (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0); INSERT INTO seeded VALUES (1, 0);
       CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON seeded
         FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'require');
       CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON seeded
         FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('require')`,
      'SELECT',
      'SELECT seeded.*, guarded.table_id::regclass::text FROM seeded, fenced_lock.guards() AS guarded',
    ],
  };
  /** Only a superuser can keep Postgres from checking these rows. */
  const OF_A_SUPERUSER: typeof KEPT = {
    'with rows older than a foreign key that they violate': [
      `CREATE TABLE one (id int PRIMARY KEY); CREATE TABLE seeded (one int); INSERT INTO seeded VALUES (1);
       ALTER TABLE seeded ADD FOREIGN KEY (one) REFERENCES one NOT VALID`,
      'DELETE FROM seeded',
      'SELECT * FROM seeded',
    ],
  };

  test.each([
    ['a superuser', 'postgres', { ...KEPT, ...OF_A_SUPERUSER }],
    ['the owner of the tables', 'kept_owner', KEPT],
  ])('keep for %s what the migrations have left', async (_, role, kept) => {
    await query(servers.databaseUrl, 'CREATE ROLE kept_owner LOGIN').catch(() => {});
    const url = Object.assign(new URL(servers.databaseUrl), { pathname: `kept_by_${role}`, username: role });
    await query(servers.databaseUrl, `CREATE DATABASE kept_by_${role} OWNER ${role}`);
    await query(url.href, readFileSync('prisma/migrations/20261101000000_fenced_lock/migration.sql', 'utf8'));
    // Each in a schema of its own: they use the same names.
    const cases = Object.entries(kept).map(([name, [migration, work, question]], index) => {
      const own = new URL(url);
      own.searchParams.set('options', `-c search_path=case_${index}`);
      return { name, schema: `case_${index}`, url: own.href, migration, work, question };
    });
    const look = async () => {
      const found = await Promise.all(cases.map(async ({ name, url, question }) => [name, await query(url, question)]));
      return Object.fromEntries(found);
    };
    for (const { schema, url, migration } of cases) await query(url, `CREATE SCHEMA ${schema}; ${migration}`);
    await makeTemplate(url.href);
    const before = await look();
    for (const { url, work } of cases) await query(url, work);
    await query(url.href, 'SELECT fenced_lock_test.empty()');
    expect(await look()).toEqual(before);
  });

  test('give each call of another process of the run a database and names in Redis of its own', async () => {
    const stop = await setUpTestServers();
    try {
      expect(process.env['DATABASE_URL']).toMatch(/^postgresql:/);
      const [one, other] = await Promise.all([testServers(), testServers()]);
      await insert(one.databaseUrl);
      expect(await stocks(other.databaseUrl)).toEqual([]);
      const [redis, stranger] = [new Redis(one.redisUrl), new Redis(other.redisUrl)];
      await redis.set('name', 'mine');
      await stranger.set('name', 'theirs');
      await other.empty();
      expect([await redis.get('name'), await stranger.get('name')]).toEqual(['mine', null]);
      expect(await stocks(one.databaseUrl)).toHaveLength(1);
      redis.disconnect();
      stranger.disconnect();
      await one.stop();
      await expect(stocks(one.databaseUrl)).rejects.toMatchObject({ code: '3D000' });
    } finally {
      await stop();
    }
    expect(process.env['DATABASE_URL']).toBe('');
  });

  test('refuse an option that is not known, and a folder that is not there, given or by default', async () => {
    const unknown = { migration: 'prisma/migrations' } as object;
    await expect(testServers(unknown)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'migration' });
    await expect(testServers({ migrations: 'no/such/folder' })).rejects.toMatchObject({ option: 'migrations' });
    vi.spyOn(process, 'cwd').mockReturnValue(tmpdir());
    await expect(setUpTestServers()).rejects.toThrow(/no folder prisma\/migrations.*`false`/);
    vi.restoreAllMocks();
  });

  test('are made of a schema without migrations, by what `fenced-lock sql` writes for it', async () => {
    const model =
      'datasource db {\n  provider = "postgresql"\n}\nmodel Chair {\n  id Int @id\n  fence BigInt @default(0)\n}\n';
    const here = project({
      'prisma/schema.prisma': model,
      'test/migrations/1_tables/migration.sql':
        'CREATE TABLE "Chair" (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0)',
    });
    here.write('test/migrations/2_locks/migration.sql', (await here.run('sql')).out);
    const stop = await setUpTestServers({ migrations: here.path('test/migrations') });
    try {
      const { databaseUrl, about } = await testServers();
      const guards = "SELECT tgrelid::regclass::text AS on FROM pg_trigger WHERE tgname = 'zzz_fenced_lock_guard'";
      expect(await query(databaseUrl, guards)).toEqual([{ on: '"Chair"' }]);
      expect(about).not.toContain('npx fenced-lock init');
    } finally {
      await stop();
    }
  });

  test('have the roles that the migrations give rights to, as those of `fenced-lock init --role`', async () => {
    const role = `app_${randomUUID()}`;
    const here = project({ 'prisma/schema.prisma': 'datasource db {\n  provider = "postgresql"\n}\n' });
    expect(await here.run('init', '--role', role)).toMatchObject({ code: 0 });
    const stop = await setUpTestServers({ migrations: here.path('prisma/migrations') });
    try {
      const { databaseUrl } = await testServers();
      const may = `SELECT has_schema_privilege('${role}', 'fenced_lock', 'USAGE') AS may`;
      expect(await query(databaseUrl, may)).toEqual([{ may: true }]);
    } finally {
      await stop();
    }
  });

  test('say where no migration makes the objects of the locks, which were added for the tests', async () => {
    const stop = await setUpTestServers({ migrations: false });
    try {
      const bare = await testServers();
      expect(bare.about).toContain('npx fenced-lock init');
      expect(await query(bare.databaseUrl, 'SELECT count(*)::int FROM fenced_lock.admission')).toEqual([{ count: 0 }]);
      expect(servers.about).not.toContain('npx fenced-lock init');
    } finally {
      await stop();
    }
  });
});

describeWithShop('servers of somebody else', () => {
  test('get databases of ours, which are gone after stop', async () => {
    for (const name of ['DATABASE_URL', 'REDIS_URL']) vi.stubEnv(name, '');
    const theirs = await testServers();
    try {
      vi.stubEnv('DATABASE_URL', theirs.databaseUrl);
      vi.stubEnv('REDIS_URL', theirs.redisUrl.replace(/\?.*/, ''));
      const names = () => query(theirs.databaseUrl, 'SELECT datname FROM pg_database ORDER BY datname');
      const before = await names();
      const servers = await testServers();
      await servers.createDatabase();
      expect(await stocks(servers.databaseUrl)).toEqual([]);
      expect(await names()).not.toEqual(before);
      await servers.stop();
      expect(await names()).toEqual(before);
    } finally {
      vi.unstubAllEnvs();
      await theirs.stop();
    }
  });
});

describe('servers that cannot be had as wanted', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  test('name the variable whose server does not answer, and what to do, without its password', async () => {
    vi.stubEnv('REDIS_URL', '');
    vi.stubEnv('DATABASE_URL', 'postgresql://user:secret@127.0.0.1:1/shop');
    const refused = await testServers().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ServerUnavailable);
    expect((refused as Error).message).toMatch(/DATABASE_URL.*unset DATABASE_URL/);
    expect((refused as Error).message).not.toContain('secret');
    vi.stubEnv('DATABASE_URL', '');
    vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:1');
    await expect(testServers()).rejects.toThrow(/REDIS_URL does not answer.*unset REDIS_URL/);
  });

  test('name the right that the role lacks, and only then', async () => {
    vi.stubEnv('REDIS_URL', '');
    const role = `no_createdb_${randomUUID().replaceAll('-', '')}`;
    const { admin } = inject('postgres');
    await query(admin, `CREATE ROLE ${role} LOGIN PASSWORD 'p'`);
    vi.stubEnv('DATABASE_URL', Object.assign(new URL(admin), { username: role, password: 'p' }).href);
    await expect(testServers()).rejects.toThrow(/Its role needs CREATEDB\./);
    vi.stubEnv('DATABASE_URL', 'postgresql://127.0.0.1:1/shop');
    await expect(testServers()).rejects.toThrow(/^(?!.*CREATEDB)/);
    vi.stubEnv('DATABASE_URL', '');
    await query(admin, `DROP ROLE ${role}`);
  });

  test('name the package pg where it is missing, before any server is started', async () => {
    vi.stubEnv('DATABASE_URL', '');
    vi.doMock('pg', () => {
      throw new Error('Cannot find package');
    });
    vi.resetModules();
    const { testServers } = await import('../../../../src/addons/testing/index.js');
    const refused = await testServers().catch((error: unknown) => error);
    vi.doUnmock('pg');
    expect(refused).toMatchObject({
      name: 'ServerUnavailable',
      message: expect.stringContaining('npm install --save-dev pg'),
    });
  });

  test('name a way to a Redis, and its emulator is used only if that is allowed', async () => {
    for (const name of ['DATABASE_URL', 'REDIS_URL']) vi.stubEnv(name, '');
    vi.stubEnv('PATH', '/nowhere');
    vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1');
    await expect(startRedis()).rejects.toThrow(/apt-get install redis-server/);
    const server = await startRedis({ allowEmulator: true });
    const redis = new Redis(server.url);
    expect([server.kind, await redis.eval("return redis.call('INCR', KEYS[1])", 1, 'counter')]).toEqual([
      'emulator',
      1,
    ]);
    redis.disconnect();
    await server.stop();
  });

  const isOnPath = onPath('initdb') !== undefined && onPath('postgres') !== undefined;
  test('PostgreSQL comes from PATH where its npm package is not installed', async ({ skip }) => {
    skip(!isOnPath, 'initdb and postgres are not on PATH');
    vi.stubEnv('DATABASE_URL', '');
    // A project without any packages.
    vi.spyOn(process, 'cwd').mockReturnValue(tmpdir());
    const postgres = await startPostgres({ settings: { fsync: 'off' } });
    expect(postgres).toMatchObject({ kind: 'PATH' });
    expect(await query(postgres.url, 'SHOW server_version')).toEqual([
      { server_version: expect.stringMatching(/^\d/) },
    ]);
    await postgres.stop();
  });
});
