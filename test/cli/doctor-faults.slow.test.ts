import { describe, expect, test } from 'vitest';
import { since } from '../support/since.js';
import { notOk, Patient } from './patient.js';

/** The rows' fences are set past the guard, as a restore does. */
const PAST_THE_GUARD = 'SET session_replication_role = replica;';

const guard = `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
  FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard`;
const admission = `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
  VALUES ('k', 5000, gen_random_uuid(), 0, 1, '{}', now());`;
const setting = (name: string, value: string) => `ALTER DATABASE $DATABASE SET ${name} = '${value}'`;

const faults: Array<[fault: string, planted: string, check: string, message: RegExp, ...args: string[]]> = [
  ['no objects at all', 'DROP SCHEMA fenced_lock CASCADE', 'objects', /schema fenced_lock is not in/],
  [
    'one of two functions of a name missing',
    'DROP FUNCTION fenced_lock.admit(text, uuid, uuid, integer, integer, integer, integer)',
    'objects',
    /Missing .*: function admit\(text, uuid, uuid, integer, integer, integer, integer\)\.$/,
  ],
  [
    'a column missing',
    'ALTER TABLE fenced_lock.admission DROP COLUMN attempts',
    'objects',
    /Missing .*: column admission\.attempts\.$/,
  ],
  ['the sequence missing', 'DROP SEQUENCE fenced_lock.token', 'objects', /sequence token/],
  [
    'objects of another version',
    `COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 0'`,
    'objects',
    /Version 0 is not/,
  ],
  ['objects of no version', 'COMMENT ON SCHEMA fenced_lock IS NULL', 'objects', /Version unknown/],
  ['an epoch that would survive a crash', 'ALTER TABLE fenced_lock.epoch SET LOGGED', 'epoch', /not UNLOGGED/],
  [
    'no right to the schema',
    'REVOKE USAGE ON SCHEMA fenced_lock FROM PUBLIC',
    'rights',
    /may not use the schema/,
    '--role',
    '$ROLE',
  ],
  [
    'no right to a function',
    'REVOKE EXECUTE ON FUNCTION fenced_lock.admit(text, uuid, uuid, integer, integer, integer, integer) FROM PUBLIC',
    'rights',
    /may not call admit\./,
    '--role',
    '$ROLE',
  ],
  [
    'the application may override the guard',
    'GRANT EXECUTE ON FUNCTION fenced_lock.override(text) TO $ROLE',
    'override',
    /^The role doctor_\w+ may call override\(\)/,
  ],
  ['a sequence with a cache', 'ALTER SEQUENCE fenced_lock.token CACHE 10', 'sequence', /CACHE/],
  ['a sequence that a crash sets back', 'ALTER SEQUENCE fenced_lock.token SET UNLOGGED', 'sequence', /UNLOGGED/],
  ['a sequence behind an admission', admission, 'sequence position', /at 0, and token 5000 .*fenced_lock\.admission/],
  [
    'a sequence behind a row',
    `${PAST_THE_GUARD} INSERT INTO orders (id, fence) VALUES (1, 77)`,
    'sequence position',
    /token 77 is in use in "public"."orders"/,
  ],
  ['a fence missing', 'ALTER TABLE "Stock" DROP COLUMN fence', 'fences', /column "fence" is missing/],
  [
    'a fence of another type',
    'ALTER TABLE "Stock" ALTER COLUMN fence TYPE integer',
    'fences',
    /fence" is integer NOT NULL DEFAULT 0, not bigint/,
  ],
  [
    'a fence that may be NULL',
    'ALTER TABLE "Stock" ALTER COLUMN fence DROP NOT NULL',
    'fences',
    /fence" is bigint DEFAULT/,
  ],
  [
    'a fence without a default',
    'ALTER TABLE orders ALTER COLUMN fence DROP DEFAULT',
    'fences',
    /fence" is bigint NOT NULL, not/,
  ],
  [
    'a guard missing',
    'DROP TRIGGER zzz_fenced_lock_guard ON "Stock"; DROP TRIGGER zzz_fenced_lock_guard_truncate ON "Stock"',
    'guards',
    /guard is missing/,
  ],
  [
    'a guard with a condition',
    `CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock" FOR EACH ROW
       WHEN (false) EXECUTE FUNCTION fenced_lock.guard('fence', 'allow')`,
    'guards',
    /is not as the migrations say \(allow\): .* WHEN \(false\)/,
  ],
  ['a guard disabled', 'ALTER TABLE "Stock" DISABLE TRIGGER zzz_fenced_lock_guard', 'guards', /is disabled/],
  ['a guard of another policy', `${guard}('fence', 'require')`, 'guards', /migrations say \(allow\): .*'require'/],
  ['a guard of another column', `${guard}('serial', 'allow')`, 'guards', /migrations say \(allow\): .*'serial'/],
  [
    'a migration that failed',
    'UPDATE _prisma_migrations SET finished_at = NULL',
    'migrations',
    /20260101000000_tables/,
  ],
  ['a database that only reads', setting('default_transaction_read_only', 'on'), 'writable', /read-only/],
  ['idle holders ended too soon', setting('idle_in_transaction_session_timeout', '1s'), 'timeouts', /is 1000 ms/],
  [
    'the same, for the application',
    `ALTER ROLE $ROLE IN DATABASE $DATABASE SET idle_in_transaction_session_timeout = '1s'`,
    'timeouts',
    /is 1000 ms/,
    '--role',
    '$ROLE',
  ],
];

describe('doctor', () => {
  const patient = new Patient();

  test('finds nothing in a healthy database, and looks at everything', async () => {
    const { code, json, ...ran } = await patient.doctor(patient.url);
    expect(notOk({ code, json, ...ran })).toEqual([]);
    expect({ code, ...json }).toMatchObject({ code: 0, ok: true, faults: 0, warnings: 0 });
  });

  test.for(faults)('finds %s', async ([, planted, check, message, ...args], { skip }) => {
    const missing = planted.includes('SEQUENCE fenced_lock.token SET UNLOGGED')
      ? since(15, 'unlogged sequence')
      : undefined;
    skip(missing !== undefined, missing);
    await using database = await patient.ill(planted);
    const ran = await patient.doctor(database.url, ...args.map((arg) => arg.replace('$ROLE', patient.role)));
    const remedy = expect.stringMatching(/./);
    expect(notOk(ran)).toMatchObject([{ check, status: 'fault', message: expect.stringMatching(message), remedy }]);
    expect(ran.code).toBe(1);
  });

  test.each<[string, string, string, RegExp]>([
    [
      "a user's trigger that runs after the guard",
      `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
       CREATE TRIGGER zzzz_late BEFORE UPDATE ON "Stock" FOR EACH ROW EXECUTE FUNCTION late()`,
      'guards',
      /zzzz_late runs after the guard/,
    ],
    [
      'other roles that may lock as everybody may',
      'GRANT CONNECT ON DATABASE $DATABASE TO $ROLE',
      'everybody',
      /^Everybody who may connect may lock, also "doctor_\w+": /,
    ],
    ['no history of Prisma', 'DROP TABLE _prisma_migrations', 'migrations', /no history/],
  ])('warns of %s, and calls the database healthy', async (_, planted, check, message) => {
    await using database = await patient.ill(planted);
    const ran = await patient.doctor(database.url);
    expect(notOk(ran)).toMatchObject([{ check, status: 'warning', message: expect.stringMatching(message) }]);
    expect(ran.code).toBe(0);
  });
});
