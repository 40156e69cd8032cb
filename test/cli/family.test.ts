import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { findings, notOk } from './patient.js';
import { Project } from './project.js';

const SCHEMA = `datasource db {
  provider = "postgresql"
}

model Sale {
  id Int @id
}

model Animal {
  id Int @id
}
`;

/** Partitions of two depths, and children of two depths. */
const TABLES = `
CREATE SCHEMA "Other";
CREATE TABLE "Sale" (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE sale_1 PARTITION OF "Sale" FOR VALUES FROM (0) TO (10);
CREATE TABLE "Other"."Sale 2" PARTITION OF "Sale" FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (id);
CREATE TABLE sale_2_1 PARTITION OF "Other"."Sale 2" FOR VALUES FROM (10) TO (20);
CREATE TABLE "Animal" (id int PRIMARY KEY);
CREATE TABLE cat (PRIMARY KEY (id)) INHERITS ("Animal");
CREATE TABLE lion (PRIMARY KEY (id)) INHERITS (cat);
`;
const LATER = `
CREATE TABLE "Other".sale_2_2 PARTITION OF "Other"."Sale 2" FOR VALUES FROM (20) TO (30);
CREATE TABLE dog (PRIMARY KEY (id)) INHERITS ("Animal");
`;
/** A row in each. */
const ROWS =
  'INSERT INTO "Sale" (id) VALUES (1), (11); INSERT INTO cat (id) VALUES (2); INSERT INTO lion (id) VALUES (3)';

describe('a guard on a table with others below it', () => {
  let template: OwnDatabase;
  let project: Project;

  beforeAll(async () => {
    template = await createDatabase();
    project = new Project({
      'prisma/schema.prisma': SCHEMA,
      'prisma/migrations/20260101000000_tables/migration.sql': TABLES,
    });
    await project.run('init');
    await project.run('add-fence', 'Sale', 'Animal');
    await applyMigrations(template.url, { dir: project.path('prisma/migrations') });
    await template.pool.query('SELECT fenced_lock.start_epoch()');
    await template.pool.end();
  });
  afterAll(async () => {
    project?.remove();
    await template?.[Symbol.asyncDispose]();
  });

  const deploy = (to: OwnDatabase) => applyMigrations(to.url, { dir: project.path('prisma/migrations') });
  const doctor = (of: OwnDatabase) => project.run('doctor', '--json', '--database-url', of.url);
  /** Runs one statement under a token. */
  async function under({ pool }: OwnDatabase, token: number, sql: string): Promise<void> {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await client.query(`SELECT set_config('fenced_lock.token', $1, true)`, [String(token)]);
      await client.query(sql);
      await client.query('COMMIT');
    } finally {
      client.release(true);
    }
  }

  test.each([
    'TRUNCATE "Sale"',
    'TRUNCATE sale_1',
    'DELETE FROM sale_1',
    'UPDATE sale_2_1 SET id = 12',
    'TRUNCATE "Animal"',
    'TRUNCATE lion',
    'UPDATE ONLY cat SET id = 4',
    'DELETE FROM lion',
  ])('refuses a stale holder: %s', async (sql) => {
    await using database = await createDatabase(template);
    await under(database, 9, ROWS);
    await expect(under(database, 8, sql)).rejects.toMatchObject({ code: 'FL001' });
    await under(database, 9, sql);
  });

  test('is healthy to doctor, and one made later is named with what it lacks', async () => {
    await using database = await createDatabase(template);
    const healthy = await doctor(database);
    expect(notOk(healthy)).toEqual([]);
    expect(findings(healthy).filter(({ check }) => check === 'guards')).toMatchObject([
      { message: 'Sale: guarded (allow), with 3 below it.' },
      { message: 'Animal: guarded (allow), with 2 below it.' },
    ]);
    await database.pool.query(LATER);
    const ill = notOk(await doctor(database));
    expect(ill.map(({ message }) => message)).toEqual([
      `Sale: of the guard's two triggers, zzz_fenced_lock_guard_truncate is missing on the partition "Other".sale_2_2.`,
      'Animal: the guard is missing on the child public.dog.',
    ]);
    for (const { remedy } of ill)
      await database.pool.query(remedy?.replace(/^.*If nothing is left to deploy: /, '') ?? '');
    expect(notOk(await doctor(database))).toEqual([]);
  });

  test.each<[string, RegExp]>([
    ['DROP TRIGGER zzz_fenced_lock_guard ON lion', /guard is missing on the child public\.lion/],
    [
      'ALTER TABLE sale_2_1 DISABLE TRIGGER zzz_fenced_lock_guard',
      /guard is disabled on the partition public\.sale_2_1/,
    ],
    [
      'ALTER TABLE cat DISABLE TRIGGER zzz_fenced_lock_guard_truncate',
      /guard_truncate is disabled on the child public\.cat/,
    ],
    [
      `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON cat FOR EACH ROW
       EXECUTE FUNCTION fenced_lock.guard('fence', 'require')`,
      /guard on the child public\.cat is not as the migrations say \(allow\)/,
    ],
  ])('a gap below it is a fault: %s', async (planted, message) => {
    await using database = await createDatabase(template);
    await database.pool.query(planted);
    expect(notOk(await doctor(database))).toMatchObject([
      { check: 'guards', status: 'fault', message: expect.stringMatching(message) },
    ]);
  });

  test('changes its policy and goes with them, also for those that were made later', async () => {
    await using database = await createDatabase(template);
    await database.pool.query(LATER);
    const triggers = async () =>
      (
        await database.pool.query<{ on: string }>(
          `SELECT tgname || ' on ' || tgrelid::regclass AS on FROM pg_trigger
           WHERE tgname LIKE 'zzz%' AND encode(tgargs, 'escape') LIKE '%require%' ORDER BY 1`,
        )
      ).rows.map((row) => row.on);
    await project.run('add-fence', 'Sale', 'Animal', '--guard', 'require');
    await deploy(database);
    expect(await triggers()).toHaveLength(9 * 2);
    await project.run('remove-fence', 'Animal');
    await project.run('add-fence', 'Sale', '--guard', 'none');
    await deploy(database);
    const { rows } = await database.pool.query(`SELECT tgrelid::regclass FROM pg_trigger WHERE tgname LIKE 'zzz%'`);
    expect(rows).toEqual([]);
  });
});
