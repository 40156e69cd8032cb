import { GUARD, GUARD_TRUNCATE } from '../migrations/fence-sql.js';
import { type Check, type Finding, fault, ok, warning } from './check.js';
import type { ExpectedFence, PostgresSubject } from './subject.js';

interface Column {
  readonly found: boolean;
  readonly type: string | null;
  readonly required: boolean | null;
  readonly initial: string | null;
}

interface Trigger {
  readonly name: string;
  readonly enabled: string;
  readonly before: boolean;
  readonly called: string;
  readonly args: Buffer;
}

const DEPLOY = 'npx prisma migrate deploy';
const AGAIN = 'Run the CREATE TRIGGER statements again that the migrations have for it.';

const columns: Check<PostgresSubject> = {
  name: 'fences',
  look: ({ ask, fences }) =>
    forEach(fences, 'No model has a fence.', async (fence) => {
      const [is] = await ask<Column>(
        `SELECT to_regclass($1) IS NOT NULL AS found, a.atttypid::regtype::text AS type, a.attnotnull AS required,
           pg_get_expr(d.adbin, d.adrelid) AS initial
         FROM (SELECT 1) AS one
         LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum`,
        [fence.table, fence.column],
      );
      return columnFinding(fence, is);
    }),
};

function columnFinding({ model, table, column }: ExpectedFence, is: Column | undefined): Finding {
  if (is === undefined || !is.found) return fault(`${model}: the table ${table} is missing.`, DEPLOY);
  const alter = `ALTER TABLE ${table} ALTER COLUMN "${column}"`;
  if (is.type === null) return fault(`${model}: the column "${column}" is missing in ${table}.`, DEPLOY);
  if (is.type !== 'bigint') return fault(`${model}: "${column}" is ${is.type}, not bigint.`, `${alter} TYPE bigint`);
  if (!is.required)
    return fault(`${model}: "${column}" may be NULL.`, `set the NULLs to 0, then ${alter} SET NOT NULL`);
  if (!/^'?0'?(::bigint)?$/.test(is.initial ?? '')) {
    return fault(
      `${model}: the default of "${column}" is ${is.initial ?? 'missing'}, not 0.`,
      `${alter} SET DEFAULT 0`,
    );
  }
  return ok(`${model}: "${column}" is bigint NOT NULL DEFAULT 0.`);
}

const guards: Check<PostgresSubject> = {
  name: 'guards',
  look: ({ ask, fences }) =>
    forEach(fences, 'No model has a fence.', async (fence) => {
      const triggers = await ask<Trigger>(
        `SELECT t.tgname AS name, t.tgenabled::text AS enabled, (t.tgtype & 3) = 3 AS before,
           n.nspname || '.' || p.proname AS called, t.tgargs AS args
         FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
         WHERE t.tgrelid = to_regclass($1) AND NOT t.tgisinternal ORDER BY t.tgname`,
        [fence.table],
      );
      return guardFinding(fence, triggers);
    }),
};

function guardFinding(fence: ExpectedFence, triggers: readonly Trigger[]): Finding {
  const { model, table, column } = fence;
  const row = triggers.find(({ name }) => name === GUARD);
  const truncate = triggers.find(({ name }) => name === GUARD_TRUNCATE);
  if (row === undefined && truncate === undefined) {
    if (fence.guard === undefined) return ok(`${model}: no guard, as in the migrations.`);
    return fault(`${model}: the guard is missing on ${table}.`, `${DEPLOY}. If nothing is left to deploy: ${AGAIN}`);
  }
  if (row === undefined || truncate === undefined) {
    return fault(
      `${model}: of the guard's two triggers, ${row ? GUARD_TRUNCATE : GUARD} is missing on ${table}.`,
      AGAIN,
    );
  }
  const off = [row, truncate].find(({ enabled }) => enabled === 'D' || enabled === 'R');
  if (off !== undefined) {
    return fault(`${model}: the trigger ${off.name} is disabled.`, `ALTER TABLE ${table} ENABLE TRIGGER ${off.name}`);
  }
  const [guarded, policy] = argumentsOf(row);
  if (row.called !== 'fenced_lock.guard' || truncate.called !== 'fenced_lock.guard_truncate') {
    return fault(`${model}: the guard's triggers call ${row.called} and ${truncate.called}.`, AGAIN);
  }
  if (guarded !== column)
    return fault(`${model}: the guard looks at "${guarded}", and the fence is "${column}".`, AGAIN);
  const expected = fence.guard?.policy ?? policy;
  if (policy !== expected || argumentsOf(truncate)[0] !== expected) {
    return fault(`${model}: the guard's policy is ${policy}, and the migrations say ${expected}.`, AGAIN);
  }
  const later = triggers.find(({ name, before }) => before && name > GUARD);
  if (later !== undefined) {
    return warning(
      `${model}: your trigger ${later.name} runs after the guard, and may undo what it did.`,
      `ALTER TRIGGER "${later.name}" ON ${table} RENAME TO a name before ${GUARD}`,
    );
  }
  return ok(`${model}: guarded (${policy}).`);
}

/** Each argument is ended by a zero byte. */
const argumentsOf = ({ args }: Trigger) => args.toString('utf8').split('\0');

async function forEach(
  fences: readonly ExpectedFence[] | undefined,
  none: string,
  look: (fence: ExpectedFence) => Promise<Finding>,
): Promise<Finding[]> {
  if (fences === undefined) {
    return [{ status: 'skipped', message: 'There is no Prisma schema here to compare with: name it with --schema.' }];
  }
  const found: Finding[] = [];
  for (const fence of fences) found.push(await look(fence));
  return found.length > 0 ? found : [ok(none)];
}

export const fenceChecks = [columns, guards];
