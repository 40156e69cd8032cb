import { describe, expect, test } from 'vitest';
import { since } from '../support/since.js';
import { notOk, Patient } from './patient.js';

/** The rows' fences are set past the guard, as a restore does. */
const PAST_THE_GUARD = 'SET session_replication_role = replica;';

const guard = `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
  FOR EACH ROW`;
const admission = `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
  VALUES ('k', 5000, gen_random_uuid(), 0, 1, '{}', now());`;
const setting = (name: string, value: string) => `ALTER DATABASE $DATABASE SET ${name} = '${value}'`;
const admit = 'fenced_lock.admit(text, uuid, uuid, integer, integer, integer, integer)';
const late = `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
  CREATE TRIGGER zzzz_late BEFORE UPDATE ON "Stock" FOR EACH ROW EXECUTE FUNCTION late()`;
const bare = 'DROP TRIGGER zzz_fenced_lock_guard ON "Stock"; DROP TRIGGER zzz_fenced_lock_guard_truncate ON "Stock"';
const fence = 'ALTER TABLE "Stock" ALTER COLUMN fence';
const forRole = `ALTER ROLE $ROLE IN DATABASE $DATABASE SET idle_in_transaction_session_timeout = '1s'`;
const version = (number: number) => `COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects ${number}'`;

const faults: Array<[planted: string, check: string, message: RegExp, role?: string]> = [
  ['DROP SCHEMA fenced_lock CASCADE', 'objects', /schema fenced_lock is not in/],
  [`DROP FUNCTION ${admit}`, 'objects', /Missing .*: function admit\(text, uuid, uuid, .*integer\)\.$/],
  ['ALTER TABLE fenced_lock.admission DROP COLUMN attempts', 'objects', /Missing .*: column admission\.attempts\.$/],
  ['DROP SEQUENCE fenced_lock.token', 'objects', /sequence token/],
  [version(0), 'objects', /Version 0 is not/],
  ['COMMENT ON SCHEMA fenced_lock IS NULL', 'objects', /Version unknown/],
  ['ALTER TABLE fenced_lock.epoch SET LOGGED', 'epoch', /not UNLOGGED/],
  ['REVOKE USAGE ON SCHEMA fenced_lock FROM PUBLIC', 'rights', /may not use the schema/, '$ROLE'],
  [`REVOKE EXECUTE ON FUNCTION ${admit} FROM PUBLIC`, 'rights', /may not call admit\./, '$ROLE'],
  [
    'GRANT EXECUTE ON FUNCTION fenced_lock.override(text) TO $ROLE',
    'override',
    /^The role doctor_\w+ may call override/,
  ],
  ['ALTER SEQUENCE fenced_lock.token CACHE 10', 'sequence', /CACHE 10/],
  ['ALTER SEQUENCE fenced_lock.token SET UNLOGGED', 'sequence', /UNLOGGED/],
  [admission, 'sequence position', /at 0, and token 5000 .*fenced_lock\.admission/],
  [
    `${PAST_THE_GUARD} INSERT INTO orders (id, fence) VALUES (1, 77)`,
    'sequence position',
    /token 77 is in use in .*orders/,
  ],
  ['ALTER TABLE "Stock" DROP COLUMN fence', 'fences', /column "fence" is missing/],
  [`${fence} TYPE integer`, 'fences', /"fence" is integer NOT NULL DEFAULT 0, not bigint/],
  [`${fence} DROP NOT NULL`, 'fences', /"fence" is bigint DEFAULT/],
  [`${fence} DROP DEFAULT`, 'fences', /"fence" is bigint NOT NULL, not/],
  [bare, 'guards', /guard is missing/],
  [
    `${guard} WHEN (false) EXECUTE FUNCTION fenced_lock.guard('fence', 'allow')`,
    'guards',
    /\(allow\): .* WHEN \(false\)/,
  ],
  [`${guard} EXECUTE FUNCTION fenced_lock.guard('fence', 'require')`, 'guards', /\(allow\): .*'require'/],
  [`${guard} EXECUTE FUNCTION fenced_lock.guard('serial', 'allow')`, 'guards', /\(allow\): .*'serial'/],
  ['ALTER TABLE "Stock" DISABLE TRIGGER zzz_fenced_lock_guard', 'guards', /is disabled/],
  ['UPDATE _prisma_migrations SET finished_at = NULL', 'migrations', /20260101000000_tables/],
  [setting('default_transaction_read_only', 'on'), 'writable', /read-only/],
  [setting('idle_in_transaction_session_timeout', '1s'), 'timeouts', /is 1000 ms/],
  [forRole, 'timeouts', /is 1000 ms/, '$ROLE'],
];

describe('doctor', () => {
  const patient = new Patient();

  test.for(faults)('finds a fault, and what to do: %s', async ([planted, check, message, role], { skip }) => {
    const missing = planted.includes('SEQUENCE fenced_lock.token SET UNLOGGED')
      ? since(15, 'unlogged sequence')
      : undefined;
    skip(missing !== undefined, missing);
    await using database = await patient.ill(planted);
    const ran = await patient.doctor(database.url, ...(role ? ['--role', patient.role] : []));
    const remedy = expect.stringMatching(/./);
    expect(notOk(ran)).toMatchObject([{ check, status: 'fault', message: expect.stringMatching(message), remedy }]);
    expect(ran.code).toBe(1);
  });

  test.each<[planted: string, check: string, message: RegExp]>([
    [late, 'guards', /zzzz_late runs after the guard/],
    [
      'GRANT CONNECT ON DATABASE $DATABASE TO $ROLE',
      'everybody',
      /^Everybody who may connect may lock, also "doctor_\w+": /,
    ],
    ['DROP TABLE _prisma_migrations', 'migrations', /no history/],
    [version(99), 'objects', /newer/],
    [setting('statement_timeout', '900ms'), 'timeouts', /statement_timeout is 900 ms/],
  ])('warns, and calls the database healthy: %s', async (planted, check, message) => {
    await using database = await patient.ill(planted);
    const ran = await patient.doctor(database.url);
    expect(notOk(ran)).toMatchObject([{ check, status: 'warning', message: expect.stringMatching(message) }]);
    expect(ran.code).toBe(0);
  });
});
