import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ADMIT } from '../../src/database/sql.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { findings, notOk, Patient } from './patient.js';
import { project, ROOT } from './project.js';

const RIGHTS = readFileSync(join(ROOT, 'docs/rights.md'), 'utf8');

describe('the owner of guarded tables, where another role owns fenced_lock and keeps it for the application', () => {
  const patient = new Patient();
  const restricted = (policy: string, action = 'ON DELETE CASCADE') => `
    ALTER TABLE "Stock" OWNER TO $ROLE; ALTER TABLE orders OWNER TO $ROLE;
    ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES "Stock" ${action};
    CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON orders
      FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', '${policy}');
    REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM PUBLIC`;

  const ofOwners = () => /GRANT USAGE ON SCHEMA fenced_lock TO "owner_of_tables";[^;]*;/.exec(RIGHTS)?.[0] ?? '';
  const ownersOf = async ({ url }: OwnDatabase) =>
    findings(await patient.doctor(url)).filter(({ check }) => check === 'owners');

  /** Deletes a parent under an admission, by a role that may lock. Returns what refuses it. */
  async function cascade({ pool }: OwnDatabase, fence: number): Promise<unknown> {
    const client = await pool.connect();
    try {
      await client.query(
        `BEGIN; SET LOCAL session_replication_role = replica;
         INSERT INTO "Stock" (id) VALUES (1); INSERT INTO orders (id, fence) VALUES (1, ${fence}); COMMIT; BEGIN`,
      );
      await client.query(ADMIT, ['k', randomUUID(), randomUUID(), 9_000, 9_000, 9_000, null]);
      return await client.query('DELETE FROM "Stock"').then(
        () => undefined,
        (error: { code: string }) => error.code,
      );
    } finally {
      await client.query('ROLLBACK; SET session_replication_role = replica; DELETE FROM orders; DELETE FROM "Stock"');
      client.release(true);
    }
  }

  test.each([
    ['a valid cascade under prove', 'prove', 0, undefined],
    ['a stale cascade under allow', 'allow', 5_000, 'FL001'],
    ['a stale cascade under require', 'require', 5_000, 'FL001'],
  ])(
    'doctor says which rights it lacks, and with them Postgres decides as the guard says: %s',
    async (_, policy, fence, decided) => {
      await using database = await patient.ill(restricted(policy));
      expect(await cascade(database, fence)).toBe('42501');
      const [found, ...others] = await ownersOf(database);
      expect(others).toEqual([]);
      expect(found).toMatchObject({
        status: 'fault',
        message: `Actions of foreign keys, such as a cascade, run the guard of public.orders as the owner ${patient.role}, who may not use the schema fenced_lock, and may not call check_writer, detail, fence_without_token, is_admitted, is_overridden, refuse_stale.`,
      });
      await database.pool.query(found?.remedy ?? '');
      expect(await cascade(database, fence)).toBe(decided);
      expect(await ownersOf(database)).toMatchObject([{ status: 'ok' }]);
    },
  );

  describe.each([
    [
      'init --role before add-fence',
      [
        ['init', '--role', '$APP'],
        ['add-fence', 'Order', '--guard', 'prove'],
      ],
    ],
    [
      'init --role behind add-fence',
      [['init'], ['add-fence', 'Order', '--guard', 'prove'], ['init', '--role', '$APP']],
    ],
    ['sql --role', [['sql', '--role', '$APP', '--guard', 'prove']]],
  ])('with %s', (_, commands) => {
    test('the owner gets these rights, and no others', async () => {
      await using database = await createDatabase();
      const app = `app_${randomUUID().replaceAll('-', '')}`;
      await database.pool.query(
        `CREATE ROLE ${app}; CREATE TABLE "Stock" (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
         CREATE TABLE orders (id int PRIMARY KEY REFERENCES "Stock" ON DELETE CASCADE);
         ALTER TABLE "Stock" OWNER TO ${patient.role}; ALTER TABLE orders OWNER TO ${patient.role}`,
      );
      onTestFinished(async () => {
        await using other = await createDatabase();
        await other.pool.query(`DROP ROLE ${app}`);
      });
      const fence = commands.length === 1 ? '\n  fence BigInt @default(0)' : '';
      const fresh = project({
        'prisma/schema.prisma': `datasource db {\n  provider = "postgresql"\n}\nmodel Order {\n  id Int @id${fence}\n  @@map("orders")\n}\n`,
      });
      for (const command of commands) {
        const { code, out } = await fresh.run(...command.map((word) => word.replace('$APP', app)));
        expect(code).toBe(0);
        await database.pool.query(command[0] === 'sql' ? out : fresh.migration().sql);
      }
      expect(await cascade(database, 0)).toBe(undefined);
      expect(await cascade(database, 5_000)).toBe('FL001');
      expect(await ownersOf(database)).toMatchObject([{ status: 'ok' }]);
      const { rows } = await database.pool.query<{ name: string }>(
        `SELECT proname AS name FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace
         AND has_function_privilege($1, oid, 'EXECUTE') ORDER BY 1`,
        [patient.role],
      );
      const named = [...ofOwners().matchAll(/fenced_lock\.(\w+)\(/g)].map(([, name]) => name);
      expect(rows.map(({ name }) => name)).toEqual(named);
      await database.pool.query(`DROP OWNED BY ${app}`);
    });
  });

  test('docs/rights.md names the same rights', async () => {
    await using database = await patient.ill(restricted('prove'));
    const [found] = await ownersOf(database);
    const plain = (sql = '') => sql.replaceAll(/[\s"]|;$/g, '').replaceAll(patient.role, 'owner_of_tables');
    expect(plain(ofOwners())).toBe(plain(found?.remedy));
  });

  test('is not asked where no action of a foreign key writes its tables, nor where everybody may lock', async () => {
    await using still = await patient.ill(restricted('prove', 'ON DELETE RESTRICT ON UPDATE NO ACTION'));
    expect(await ownersOf(still)).toMatchObject([{ status: 'ok' }]);
    await using open = await patient.ill(restricted('prove').replaceAll(/REVOKE[^;]*;?/g, ''));
    expect(notOk(await patient.doctor(open.url)).map(({ check }) => check)).not.toContain('owners');
  });
});

describe('the owner of a guarded table with partitions, where another role owns fenced_lock and keeps it for the application', () => {
  const patient = new Patient();
  const TABLES = `
    CREATE TABLE sales (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
    CREATE TABLE later (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
    GRANT CREATE ON SCHEMA public TO $ROLE; ALTER TABLE sales OWNER TO $ROLE; ALTER TABLE later OWNER TO $ROLE;`;
  const GUARD = `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON sales
      FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow');`;
  const REVOKED = `REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM PUBLIC`;
  const ofPartitions = () =>
    /GRANT USAGE [^;]*;\s*GRANT EXECUTE ON FUNCTION\s+fenced_lock\.guard\(\)[^;]*;/.exec(RIGHTS)?.[0] ?? '';
  const ownersOf = async ({ url }: OwnDatabase) =>
    findings(await patient.doctor(url)).filter(({ check }) => check === 'owners');

  /** What the owner of the table does as it makes partitions: by name, by attaching, and the trigger that doctor asks for. */
  const STEPS = [
    'CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10)',
    'ALTER TABLE sales ATTACH PARTITION later FOR VALUES FROM (10) TO (20)',
    `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON later
       FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('allow')`,
  ];
  async function makePartitions({ pool }: OwnDatabase): Promise<string[]> {
    const client = await pool.connect();
    try {
      await client.query(`SET ROLE ${patient.role}`);
      const outcomes: string[] = [];
      for (const step of STEPS) {
        outcomes.push(
          await client.query(step).then(
            () => 'ok',
            ({ code }: { code: string }) => code,
          ),
        );
      }
      return outcomes;
    } finally {
      client.release(true);
    }
  }

  test('doctor says which rights it lacks, and with them it makes and attaches partitions', async () => {
    await using database = await patient.ill(`${TABLES} ${GUARD} ${REVOKED}`);
    expect(await makePartitions(database)).toEqual(['42501', '42501', '42501']);
    const [found, ...others] = await ownersOf(database);
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      status: 'fault',
      message: `New partitions of public.sales get its guard, and are refused to the owner ${patient.role}, who may not use the schema fenced_lock, and may not call guard, guard_truncate.`,
    });
    const plain = (sql = '') => sql.replaceAll(/[\s"]|;$/g, '').replaceAll(patient.role, 'owner_of_tables');
    expect(plain(ofPartitions())).toBe(plain(found?.remedy));
    await database.pool.query(found?.remedy ?? '');
    expect(await makePartitions(database)).toEqual(['ok', 'ok', 'ok']);
    expect(await ownersOf(database)).toMatchObject([{ status: 'ok' }]);
  });

  test('gets them by `init --role`, and no owner of a table without partitions does', async () => {
    await using database = await createDatabase();
    const app = `app_${randomUUID().replaceAll('-', '')}`;
    onTestFinished(async () => {
      await using other = await createDatabase();
      await other.pool.query(`DROP ROLE ${app}`);
    });
    await database.pool.query(`CREATE ROLE ${app}; ${TABLES.replaceAll('$ROLE', patient.role)}
      CREATE TABLE plain (id int PRIMARY KEY); ALTER TABLE plain OWNER TO ${app}`);
    const fresh = project({
      'prisma/schema.prisma': `datasource db {\n  provider = "postgresql"\n}\nmodel sales {\n  id Int @id\n}\nmodel plain {\n  id Int @id\n}\n`,
    });
    for (const command of [['init'], ['add-fence', 'sales', 'plain'], ['init', '--role', app]]) {
      expect(await fresh.run(...command)).toMatchObject({ code: 0 });
      await database.pool.query(fresh.migration().sql);
    }
    expect(await makePartitions(database)).toEqual(['ok', 'ok', 'ok']);
    expect(await ownersOf(database)).toMatchObject([{ status: 'ok' }]);
    const { rows } = await database.pool.query<{ role: string }>(
      `SELECT r.role FROM unnest(ARRAY['${patient.role}', '${app}']) AS r(role)
       WHERE has_function_privilege(r.role, 'fenced_lock.guard()', 'EXECUTE')`,
    );
    expect(rows).toEqual([{ role: patient.role }]);
    await database.pool.query(`DROP OWNED BY ${app}, ${patient.role}`);
  });
});
