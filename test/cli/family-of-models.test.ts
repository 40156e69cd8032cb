import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { notOk } from './patient.js';
import { Project } from './project.js';

const SCHEMA = `datasource db {
  provider = "postgresql"
}

model Animal {
  id Int @id
}

model Cat {
  id Int @id

  @@map("cat")
}
`;
/** A lion is below the cat, and a dog beside it. */
const TABLES = `
CREATE TABLE "Animal" (id int PRIMARY KEY);
CREATE TABLE cat (PRIMARY KEY (id)) INHERITS ("Animal");
CREATE TABLE lion (PRIMARY KEY (id)) INHERITS (cat);
CREATE TABLE dog (PRIMARY KEY (id)) INHERITS ("Animal");
`;

describe('a child by inheritance that is a fenced model of its own', () => {
  let project: Project;
  let database: OwnDatabase;
  const made: Project[] = [];

  beforeEach(async () => {
    project = new Project({
      'prisma/schema.prisma': SCHEMA,
      'prisma/migrations/20260101000000_tables/migration.sql': TABLES,
    });
    made.push(project);
    database = await createDatabase();
    await project.run('init');
  });
  afterEach(async () => await database?.[Symbol.asyncDispose]());
  afterAll(() => {
    for (const one of made) one.remove();
  });

  async function deploy(...commands: ReadonlyArray<readonly string[]>): Promise<void> {
    for (const command of commands) expect(await project.run(...command)).toMatchObject({ code: 0 });
    await applyMigrations(database.url, { dir: project.path('prisma/migrations') });
  }
  /** The policies of both triggers, by table. */
  async function policies(): Promise<Record<string, string>> {
    const { rows } = await database.pool.query<{ table: string; policies: string }>(
      `SELECT tgrelid::regclass::text AS table,
         string_agg(DISTINCT regexp_replace(encode(tgargs, 'escape'), '^fence.000|.000$', '', 'g'), ', ') AS policies
       FROM pg_trigger WHERE tgname LIKE 'zzz_fenced_lock_guard%' GROUP BY 1`,
    );
    return Object.fromEntries(rows.map(({ table, policies }) => [table, policies]));
  }
  async function faults(): Promise<string[]> {
    await database.pool.query('SELECT fenced_lock.start_epoch()');
    return notOk(await project.run('doctor', '--json', '--database-url', database.url)).map(({ message }) => message);
  }

  test('keeps its policy, with what is below it, where its parent gets a guard or another policy', async () => {
    await deploy(['add-fence', 'Cat', '--guard', 'require'], ['add-fence', 'Animal']);
    const own = { cat: 'require', lion: 'require' };
    expect(await policies()).toEqual({ '"Animal"': 'allow', dog: 'allow', ...own });
    expect(await faults()).toEqual([]);
    await deploy(['add-fence', 'Animal', '--guard', 'prove']);
    expect(await policies()).toEqual({ '"Animal"': 'prove', dog: 'prove', ...own });
    const { out } = await project.run('sql');
    await database.pool.query(out);
    expect(await policies()).toEqual({ '"Animal"': 'prove', dog: 'prove', ...own });
    expect(await faults()).toEqual([]);
  });
});
