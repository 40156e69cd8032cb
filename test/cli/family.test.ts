import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { notOk } from './patient.js';
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

model Bird {
  id Int @id

  @@map("bird")
}
`;

/** Partitions of two depths, and children of two depths, of which one is a model of its own. */
const TABLES = `
CREATE SCHEMA "Other";
CREATE TABLE "Sale" (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE sale_1 PARTITION OF "Sale" FOR VALUES FROM (0) TO (10);
CREATE TABLE "Other"."Sale 2" PARTITION OF "Sale" FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (id);
CREATE TABLE sale_2_1 PARTITION OF "Other"."Sale 2" FOR VALUES FROM (10) TO (20);
CREATE TABLE "Animal" (id int PRIMARY KEY);
CREATE TABLE cat (PRIMARY KEY (id)) INHERITS ("Animal");
CREATE TABLE lion (PRIMARY KEY (id)) INHERITS (cat);
CREATE TABLE bird (PRIMARY KEY (id)) INHERITS ("Animal");
CREATE TABLE owl (PRIMARY KEY (id)) INHERITS (bird);
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
    await project.run('add-fence', 'Bird', '--guard', 'require');
    await project.run('add-fence', 'Sale', 'Animal');
    await deploy(template);
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
    'UPDATE sale_2_1 SET id = 12',
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
    expect(notOk(await doctor(database))).toEqual([]);
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

  test('changes its policy and goes with them, also those made later, and a model of its own keeps its own', async () => {
    await using database = await createDatabase(template);
    await database.pool.query(LATER);
    /** The policies of both triggers, by table. */
    const policies = async () => {
      const { rows } = await database.pool.query<{ table: string; policies: string }>(
        `SELECT tgrelid::regclass::text AS table,
           string_agg(DISTINCT substring(pg_get_triggerdef(oid) FROM '''(\\w+)''\\)$'), ', ') AS policies
         FROM pg_trigger WHERE tgname LIKE 'zzz_fenced_lock_guard%' GROUP BY 1`,
      );
      return Object.fromEntries(rows.map(({ table, policies }) => [table, policies]));
    };
    const own = { bird: 'require', owl: 'require' };
    const sales = ['"Sale"', 'sale_1', '"Other"."Sale 2"', 'sale_2_1', '"Other".sale_2_2'];
    const all = [...sales, '"Animal"', 'cat', 'lion', 'dog'];
    await project.run('add-fence', 'Sale', 'Animal', '--guard', 'prove');
    await deploy(database);
    const proved = { ...Object.fromEntries(all.map((table) => [table, 'prove'])), ...own };
    expect(await policies()).toEqual(proved);
    await database.pool.query((await project.run('sql')).out);
    expect(await policies()).toEqual(proved);
    await project.run('remove-fence', 'Sale');
    await project.run('add-fence', 'Animal', '--guard', 'none');
    await deploy(database);
    expect(await policies()).toEqual(own);
  });
});
