import { GUARD, GUARD_TRUNCATE, type Guard, rowTrigger, truncateTrigger } from '../migrations/guard-sql.js';
import { identifier } from '../migrations/identifiers.js';
import { deploy, PUSHED } from '../project/remedies.js';
import { type Finding, fault, ok, warning } from './check.js';
import type { ExpectedFence, PostgresSubject, UnfencedModel } from './subject.js';

interface Trigger {
  readonly name: string;
  readonly enabled: string;
  readonly before: boolean;
  /** Whether the trigger fires for every row and every kind of write that a guard must check. */
  readonly whole: boolean;
  readonly called: string;
  readonly args: readonly string[];
}

/** A table, partition or child, with its triggers. */
interface Relation {
  readonly table: string;
  readonly kind: 'table' | 'partition' | 'child' | 'foreign table';
  readonly triggers: readonly Trigger[];
}

/** A trigger of a relation, or a relation without triggers. */
interface GuardRow extends Omit<Relation, 'triggers'>, Omit<Trigger, 'name' | 'args'> {
  readonly name: string | null;
  readonly args: Buffer;
}

/** The table first, then its partitions and children, but for children that are among the `fenced` tables themselves. */
export async function familyOf(
  ask: PostgresSubject['ask'],
  table: string,
  fenced: readonly string[],
): Promise<Relation[]> {
  const rows = await ask<GuardRow>(
    `WITH RECURSIVE family(id) AS (
       SELECT to_regclass($1)::oid
       UNION
       SELECT i.inhrelid FROM pg_inherits AS i JOIN family AS f ON i.inhparent = f.id
       JOIN pg_class AS c ON c.oid = i.inhrelid
       WHERE c.relispartition OR NOT EXISTS (SELECT FROM unnest($2::text[]) AS t(name) WHERE to_regclass(t.name) = c.oid)
     )
     SELECT c.oid::regclass::text AS table,
       CASE WHEN c.oid = to_regclass($1) THEN 'table' WHEN c.relkind = 'f' THEN 'foreign table'
         WHEN c.relispartition THEN 'partition' ELSE 'child' END AS kind,
       t.tgname AS name, t.tgenabled::text AS enabled, (t.tgtype & 3) = 3 AS before,
       t.tgqual IS NULL AND t.tgattr::text = '' AND t.tgtype IN (31, 34) AS whole,
       n.nspname || '.' || p.proname AS called, t.tgargs AS args
     FROM family AS f JOIN pg_class AS c ON c.oid = f.id
     LEFT JOIN pg_trigger AS t ON t.tgrelid = c.oid AND NOT (t.tgisinternal AND t.tgparentid = 0)
     LEFT JOIN pg_proc AS p ON p.oid = t.tgfoid LEFT JOIN pg_namespace AS n ON n.oid = p.pronamespace
     ORDER BY c.oid <> to_regclass($1), 1, t.tgname`,
    [table, fenced],
  );
  const family = new Map<string, { kind: Relation['kind']; triggers: Trigger[] }>();
  for (const { table, kind, name, args, ...trigger } of rows) {
    const relation = family.get(table) ?? { kind, triggers: [] };
    family.set(table, relation);
    // Each argument ends with a zero byte.
    if (name !== null) relation.triggers.push({ ...trigger, name, args: args.toString('utf8').split('\0') });
  }
  return [...family].map(([table, rest]) => ({ table, ...rest }));
}

export function guardFinding(fence: ExpectedFence, family: readonly Relation[], migrates: boolean): Finding {
  const { model, column, guard } = fence;
  const own = family[0]?.triggers ?? [];
  const row = triggerOf(own, GUARD);
  if (guard === undefined && row === undefined && triggerOf(own, GUARD_TRUNCATE) === undefined) {
    if (migrates) return ok(`${model}: no guard, as in the migrations.`);
    return warning(`${model}: no guard, so only direct writes by Prisma are held to the fence.`, PUSHED);
  }
  const expected = { column, policy: guard?.policy ?? row?.args[1] ?? 'allow' };
  // A missing table is reported by another check.
  const relations: readonly Relation[] =
    family.length > 0 ? family : [{ table: fence.table, kind: 'table', triggers: [] }];
  for (const relation of relations) {
    const found = defectOf(relation, expected, migrates);
    if (found !== undefined) return { ...found, message: `${model}: ${found.message}` };
  }
  const below = relations.length - 1;
  return ok(`${model}: guarded (${expected.policy})${below > 0 ? `, with ${below} below it` : ''}.`);
}

interface LeftGuard {
  readonly table: string;
  readonly column: string;
  readonly hasColumn: boolean;
  /** The position of its model among those without a fence, from 1 on. */
  readonly model: string | null;
}

/** What is wrong with guards on tables that no model has a fence for. Tables of other projects are healthy if their column is there. */
export async function leftGuards(
  ask: PostgresSubject['ask'],
  fenced: readonly string[],
  unfenced: readonly UnfencedModel[],
): Promise<Finding[]> {
  const rows = await ask<LeftGuard>(
    `SELECT g.id::regclass::text AS table, g.fence AS column, a.attnum IS NOT NULL AS "hasColumn",
       (SELECT min(u.position) FROM unnest($2::text[]) WITH ORDINALITY AS u(name, position)
        WHERE to_regclass(u.name) = g.id)::text AS model
     FROM (SELECT t.tgrelid AS id,
             convert_from(substring(t.tgargs FROM 1 FOR position('\\x00'::bytea IN t.tgargs) - 1), getdatabaseencoding()) AS fence
           FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
           WHERE t.tgname = $3 AND n.nspname = 'fenced_lock' AND p.proname = 'guard' AND t.tgnargs > 0
             AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = t.tgrelid)) AS g
     LEFT JOIN pg_attribute AS a ON a.attrelid = g.id AND a.attname = g.fence AND NOT a.attisdropped
     WHERE NOT EXISTS (SELECT FROM unnest($1::text[]) AS f(name) WHERE to_regclass(f.name) = g.id)
     ORDER BY 1`,
    [fenced, unfenced.map(({ table }) => table), GUARD],
  );
  return rows.flatMap(({ table, column, hasColumn, model: position }) => {
    const of = position === null ? undefined : unfenced[Number(position) - 1];
    // The fence may have another name than doctor was told.
    if (hasColumn && (of === undefined || of.columns.includes(column))) return [];
    const model = of?.model;
    const remedy =
      model === undefined
        ? `Add the column again, or DROP TRIGGER ${GUARD} ON ${table}; DROP TRIGGER ${GUARD_TRUNCATE} ON ${table}`
        : `Put the field back (\`${column} BigInt @default(0)\`) and deploy its column; or npx fenced-lock remove-fence ${model}, then ` +
          'npx prisma migrate deploy';
    const named = model === undefined ? '' : `${model}: `;
    return hasColumn
      ? warning(
          `${named}${table} has a guard, and the model has no field for its column "${column}": the next migration of Prisma ` +
            'drops the column, and then each write fails.',
          remedy,
        )
      : fault(`${named}${table} has a guard, and its column "${column}" is gone: each write fails.`, remedy);
  });
}

/** Tables with the guard of TRUNCATE alone, which DETACH PARTITION leaves: it takes the row trigger, which is the parent's, away. */
export async function detachedPartitions(ask: PostgresSubject['ask'], fenced: readonly string[]): Promise<Finding[]> {
  const rows = await ask<{ readonly table: string }>(
    `SELECT t.tgrelid::regclass::text AS table
     FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
     WHERE t.tgname = $2 AND n.nspname = 'fenced_lock' AND p.proname = 'guard_truncate'
       AND NOT EXISTS (SELECT FROM pg_trigger AS r WHERE r.tgrelid = t.tgrelid AND r.tgname = $3)
       AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = t.tgrelid)
       AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS f(name) WHERE to_regclass(f.name) = t.tgrelid)
     ORDER BY 1`,
    [fenced, GUARD_TRUNCATE, GUARD],
  );
  return rows.map(({ table }) =>
    warning(
      `${table} has the guard of TRUNCATE alone, as a partition that was detached: its rows have none.`,
      `DROP TRIGGER ${GUARD_TRUNCATE} ON ${table}`,
    ),
  );
}

function defectOf({ table, kind, triggers }: Relation, expected: Guard, migrates: boolean): Finding | undefined {
  const where = kind === 'table' ? table : `the ${kind} ${table}`;
  const makeRow = oneLine(rowTrigger(table, expected));
  const makeTruncate = oneLine(truncateTrigger(table, expected));
  const again = `${makeRow}; ${makeTruncate}`;
  const row = triggerOf(triggers, GUARD);
  const truncate = triggerOf(triggers, GUARD_TRUNCATE);
  // A foreign table needs no TRUNCATE trigger: its rows are on another server, where they can be truncated in any case.
  const complete = row !== undefined && (truncate !== undefined || kind === 'foreign table');
  if (row === undefined && truncate === undefined) {
    return fault(
      `the guard is missing on ${where}.`,
      migrates ? `${deploy(true)}. If nothing is left to deploy: ${again}` : PUSHED,
    );
  }
  if (!complete) {
    const [missing, remedy] = row === undefined ? [GUARD, makeRow] : [GUARD_TRUNCATE, makeTruncate];
    return fault(`of the guard's two triggers, ${missing} is missing on ${where}.`, remedy);
  }
  for (const trigger of truncate === undefined ? [row] : [row, truncate]) {
    const { name, enabled, whole, called, args } = trigger;
    if (enabled === 'D' || enabled === 'R') {
      return fault(`the trigger ${name} is disabled on ${where}.`, `ALTER TABLE ${table} ENABLE TRIGGER ${name}`);
    }
    const [should, policy] = trigger === row ? ['fenced_lock.guard', args[1]] : ['fenced_lock.guard_truncate', args[0]];
    if (!whole) return fault(`the trigger ${name} does not fire for every write on ${where}.`, again);
    if (called !== should) return fault(`the trigger ${name} calls ${called} on ${where}.`, again);
    if (trigger === row && args[0] !== expected.column) {
      return fault(`the guard looks at "${args[0]}" on ${where}, and the fence is "${expected.column}".`, again);
    }
    if (policy !== expected.policy) {
      return fault(`the guard's policy is ${policy} on ${where}, and the migrations say ${expected.policy}.`, again);
    }
  }
  const later = triggers.find(({ name, before }) => before && name > GUARD);
  if (later === undefined) return undefined;
  return warning(
    `your trigger ${later.name} runs after the guard on ${where}, and may undo what it did.`,
    `ALTER TRIGGER ${identifier(later.name)} ON ${table} RENAME TO a name before ${GUARD}`,
  );
}

const triggerOf = (triggers: readonly Trigger[], wanted: string) => triggers.find(({ name }) => name === wanted);
const oneLine = (sql: string) => sql.replaceAll(/\n\s*/g, ' ');
