import { describe, expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';
import type { OwnDatabase } from './database.js';
import { notOk, Patient } from './patient.js';

/** The rows' fences are set past the guard, as a restore does. */
const PAST_THE_GUARD = 'SET session_replication_role = replica;';
const WILD = 2n ** 63n - 1n;
const LARGE = 5_000_000_000;

const admission = (token: number | bigint) =>
  `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
   VALUES ('k''${token}', ${token}, gen_random_uuid(), 0, 1, '{}', now());`;
const stock = (id: number, fence: number | bigint) =>
  `${PAST_THE_GUARD} INSERT INTO "Stock" (id, fence) VALUES (${id}, ${fence});`;

const sequence = async ({ pool }: OwnDatabase) =>
  (await pool.query('SELECT last_value::text AS at FROM fenced_lock.token')).rows[0].at as string;

/** What doctor prints for the owner to run, up to where it is for doctor again. */
const statements = (remedy = '') => remedy.replace(/^As the owner of [^:]*: /, '').replace(/\. If it was drawn.*/, '');

describe('doctor --fix', () => {
  const patient = new Patient();

  test.each<[what: string, planted: string, to: number]>([
    ['rows whose tokens are near each other', [0, 9, 40].map((n) => stock(n, LARGE - n)).join(''), LARGE],
    ['one row, and its admission', stock(1, LARGE) + admission(LARGE), LARGE],
    ['an admission alone', admission(LARGE), LARGE],
    ['one row that is not far', stock(1, 1_000_000), 1_000_000],
  ])('takes it for a restore, and sets the sequence: %s', async (_, planted, to) => {
    await using database = await patient.ill(planted);
    const found = notOk(await patient.doctor(database.url));
    expect(found).toMatchObject([{ check: 'sequence position', remedy: 'doctor --fix' }]);
    expect(notOk(await patient.doctor(database.url, '--fix'))).toEqual([]);
    expect(await sequence(database)).toBe(String(to));
  });

  test.each<[what: string, planted: string, fence: number | bigint, limit: number]>([
    ['the highest of all', stock(1, WILD), WILD, 0],
    [
      'above what any sequence reaches, though in many rows',
      [1, 2, 3].map((n) => stock(n, 2n ** 53n + 1n)).join(''),
      2n ** 53n + 1n,
      0,
    ],
    ['alone and far', stock(1, LARGE), LARGE, 0],
    [
      'alone and far above a restore',
      stock(1, LARGE * 1_000) + stock(2, LARGE) + admission(LARGE),
      LARGE * 1_000,
      LARGE,
    ],
    ['one above the other', stock(1, LARGE) + stock(2, LARGE * 1_000), LARGE * 1_000, 0],
  ])('refuses a wild fence, and sets nothing: %s', async (_, planted, fence, limit) => {
    await using database = await patient.ill(planted);
    const ran = await patient.doctor(database.url, '--fix');
    expect(notOk(ran)).toMatchObject([
      {
        check: 'sequence position',
        status: 'fault',
        message: expect.stringContaining(`No lock drew the token ${fence} that "public"."Stock" has in ("id" = '`),
        remedy: expect.stringContaining(
          `UPDATE "public"."Stock" SET "fence" = ${limit} WHERE "fence" > (SELECT greatest(last_value, ${limit}) FROM fenced_lock.token)`,
        ),
      },
    ]);
    expect(ran.code).toBe(1);
    expect(await sequence(database)).toBe('1');
  });

  test.each(['allow', 'require', 'prove'])(
    'prints statements by which the owner lowers it, and then all is well: %s',
    async (policy) => {
      await using database = await patient.ill(
        `ALTER TABLE "Stock" OWNER TO $ROLE; GRANT EXECUTE ON FUNCTION fenced_lock.override(text) TO $ROLE;
         GRANT SELECT ON fenced_lock.token TO $ROLE;
         ${stock(1, WILD)} ${stock(2, 40)} ${admission(40)}
         CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
           FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', '${policy}')`,
      );
      const found = notOk(await patient.doctor(database.url)).find(({ check }) => check === 'sequence position');
      const owner = await database.pool.connect();
      await owner.query(`SET session_replication_role = origin; SET ROLE ${patient.role}`);
      await owner.query('UPDATE "Stock" SET fence = 0').catch(() => {});
      await owner.query(statements(found?.remedy));
      owner.release(true);
      const { rows } = await database.pool.query('SELECT id, fence::int FROM "Stock" ORDER BY id');
      expect(rows).toEqual([
        { id: 1, fence: 40 },
        { id: 2, fence: 40 },
      ]);
      await patient.doctor(database.url, '--fix');
      expect(await sequence(database)).toBe('40');
    },
  );

  test('in partitions, children and a table without a key, they work as well', async () => {
    const guarded = (
      table: string,
    ) => `CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON ${table}
      FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow');`;
    await using database = await patient.ill(
      `DROP TABLE "Stock", orders;
       CREATE TABLE "Stock" (a int, "b'%" text, secret text, fence bigint NOT NULL DEFAULT 0, PRIMARY KEY (a, "b'%")) PARTITION BY LIST (a);
       CREATE TABLE stock_1 PARTITION OF "Stock" FOR VALUES IN (1);
       CREATE TABLE orders (id int, serial bigint, fence bigint NOT NULL DEFAULT 0);
       CREATE TABLE child () INHERITS (orders);
       ${guarded('"Stock"')} ${guarded('orders')} ${guarded('child')}
       ${PAST_THE_GUARD} INSERT INTO "Stock" VALUES (1, 'it''s', 'not to be told', ${WILD}); INSERT INTO child VALUES (1, 2, ${WILD});`,
    );
    const ran = await patient.doctor(database.url);
    const found = notOk(ran).filter(({ check }) => check === 'sequence position');
    expect(found.map(({ message }) => message)).toEqual([
      expect.stringContaining(`"public"."Stock" has in ("a" = '1' AND "b'%" = 'it''s')`),
      expect.stringContaining(`"public"."orders" has in (ctid = '(0,1)' AND tableoid = 'public.child'::regclass)`),
    ]);
    expect(ran.out).not.toContain('not to be told');
    for (const { remedy } of found) await database.pool.query(statements(remedy));
    const { rows } = await database.pool.query('SELECT fence FROM "Stock" UNION ALL SELECT fence FROM orders');
    expect(rows).toEqual([{ fence: '0' }, { fence: '0' }]);
  });

  test('a lone row is believed where whoever runs it says that the token was drawn', async () => {
    await using database = await patient.ill(stock(1, LARGE));
    const found = notOk(await patient.doctor(database.url));
    expect(found[0]?.remedy).toContain(`If it was drawn: doctor --fix --up-to ${LARGE}`);
    expect(notOk(await patient.doctor(database.url, '--fix', '--up-to', String(LARGE)))).toEqual([]);
    expect(await sequence(database)).toBe(String(LARGE));
  });

  test.each(['all', '-1', String(2n ** 53n + 1n), String(WILD)])('--up-to %s is wrong usage', async (token) => {
    expect(await patient.doctor(patient.url, '--fix', `--up-to=${token}`)).toMatchObject({ code: 2 });
  });

  test('a sequence that was set beside a wild fence is found, and the statements set it back', async () => {
    await using database = await patient.ill(
      `${stock(1, WILD)} ${stock(2, 70)} ${admission(70)} ${admission(WILD - 1n)} SELECT setval('fenced_lock.token', ${WILD})`,
    );
    await expect(database.pool.query(`SELECT nextval('fenced_lock.token')`)).rejects.toThrow(/reached maximum/);
    const [found, ...others] = notOk(await patient.doctor(database.url, '--fix'));
    expect(others).toEqual([]);
    expect(found?.message).toMatch(/^The sequence is at 9223372036854775807, which no lock has reached/);
    const [stop, ...steps] = found?.remedy?.split('. Then: ') ?? [];
    expect(stop).toBe('Stop all clients');
    for (const step of steps) await database.pool.query(step);
    expect(notOk(await patient.doctor(database.url))).toEqual([]);
    const { rows } = await database.pool.query(`SELECT nextval('fenced_lock.token')::int AS next`);
    expect(rows).toEqual([{ next: 71 }]);
  });
});

describeWithShop('doctor, beside real locks', () => {
  const patient = new Patient();
  let url = '';
  const shop = new Shop(() => ({ postgres: url, admin: url, redis: inject('redis').url ?? '' }));

  test('finds nothing', async () => {
    await using database = await patient.ill('SELECT 1');
    url = database.url;
    const { prisma } = shop.client({ keyPrefix: `${database.name}:` });
    let goesOn = true;
    const work = async () => {
      while (goesOn) {
        await prisma.$withLock('stock:1', async (tx) => {
          await tx.$executeRaw`INSERT INTO "Stock" (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = excluded.id`;
        });
      }
    };
    const load = work();
    try {
      for (let round = 0; round < 10; round++) expect(notOk(await patient.doctor(url))).toEqual([]);
    } finally {
      goesOn = false;
      await load;
      await shop.close();
    }
  });
});
