import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ADMIT } from '../../src/database/sql.js';
import type { OwnDatabase } from './database.js';
import { findings, notOk, Patient } from './patient.js';
import { ROOT } from './project.js';

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
      await client.query(ADMIT, [['k'], [randomUUID()], randomUUID(), 9_000, 9_000, 9_000, null, null, null, null]);
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

  test('docs/rights.md names the same rights', async () => {
    await using database = await patient.ill(restricted('prove'));
    const [found] = await ownersOf(database);
    const [granted] = /GRANT USAGE ON SCHEMA fenced_lock TO "owner_of_tables";[^;]*;/.exec(RIGHTS) ?? [''];
    const plain = (sql = '') => sql.replaceAll(/[\s"]|;$/g, '').replaceAll(patient.role, 'owner_of_tables');
    expect(plain(granted)).toBe(plain(found?.remedy));
  });

  test('is not asked where no action of a foreign key writes its tables, nor where everybody may lock', async () => {
    await using still = await patient.ill(restricted('prove', 'ON DELETE RESTRICT ON UPDATE NO ACTION'));
    expect(await ownersOf(still)).toMatchObject([{ status: 'ok' }]);
    await using open = await patient.ill(restricted('prove').replaceAll(/REVOKE[^;]*;?/g, ''));
    expect(notOk(await patient.doctor(open.url)).map(({ check }) => check)).not.toContain('owners');
  });
});
