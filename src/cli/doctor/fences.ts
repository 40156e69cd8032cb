import { GUARD, GUARD_TRUNCATE, type Guard, rowTrigger, truncateTrigger } from '../migrations/guard-sql.js';
import { identifier } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import { deploy, PUSHED } from '../project/remedies.js';
import { type Check, type Finding, fault, type ModelTable, ok, type PostgresSubject, warning } from './check.js';

type FencedModel = ModelTable & { readonly fence: string };

export function fencesOf(models: PostgresSubject['models']): readonly FencedModel[] {
  return models instanceof Problem ? [] : models.filter((model): model is FencedModel => model.fence !== undefined);
}

/** Looks at each fenced model. */
const ofEach =
  (look: (subject: PostgresSubject, model: FencedModel) => Promise<Finding>) => async (subject: PostgresSubject) => {
    const { models } = subject;
    if (models instanceof Problem) {
      return [{ status: 'skipped', message: `Not compared with a schema. ${models.message}` }] as const;
    }
    const found: Finding[] = [];
    for (const model of fencesOf(models)) found.push(await look(subject, model));
    return found.length > 0 ? found : [ok('No model has a fence.')];
  };

interface Column {
  readonly found: boolean;
  readonly type: string | null;
  readonly required: boolean | null;
  readonly initial: string | null;
}

const columns: Check<PostgresSubject> = {
  name: 'fences',
  look: ofEach(async ({ ask, migrates }, { model, table, fence }) => {
    const [is] = await ask<Column>(
      `SELECT to_regclass($1) IS NOT NULL AS found, a.atttypid::regtype::text AS type, a.attnotnull AS required,
         pg_get_expr(d.adbin, d.adrelid) AS initial
       FROM (SELECT 1) AS one
       LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped
       LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum`,
      [table, fence],
    );
    const alter = `ALTER TABLE ${table} ALTER COLUMN "${fence}"`;
    if (!is?.found) return fault(`${model}: the table ${table} is missing.`, deploy(migrates));
    if (is.type === null) return fault(`${model}: the column "${fence}" is missing in ${table}.`, deploy(migrates));
    if (is.type !== 'bigint') {
      const remedy = `Write \`BigInt @default(0)\` in the model, then npx prisma migrate dev; or ${alter} TYPE bigint`;
      return fault(`${model}: "${fence}" is ${is.type}, not bigint.`, remedy);
    }
    if (!is.required) {
      return fault(`${model}: "${fence}" may be NULL.`, `set the NULLs to 0, then ${alter} SET NOT NULL`);
    }
    if (/^'?0'?(::bigint)?$/.test(is.initial ?? '')) return ok(`${model}: "${fence}" is bigint NOT NULL DEFAULT 0.`);
    return fault(`${model}: the default of "${fence}" is ${is.initial ?? 'missing'}, not 0.`, `${alter} SET DEFAULT 0`);
  }),
};

interface Trigger {
  readonly name: string;
  readonly enabled: string;
  readonly before: boolean;
  /** Whether the trigger fires for every row and every kind of write that a guard must check. */
  readonly whole: boolean;
  readonly called: string;
  /** In hexadecimal, each with a zero byte behind it. */
  readonly args: string;
}

const argsOf = ({ args }: Trigger) => Buffer.from(args, 'hex').toString('utf8').split('\0');

/** A table, partition or child, with its triggers. */
interface Relation {
  readonly table: string;
  readonly kind: 'table' | 'partition' | 'child' | 'foreign table';
  readonly triggers: readonly Trigger[];
}

/** The table first, then its partitions and children, but for children that are fenced tables themselves ($2). */
const FAMILY = `
WITH RECURSIVE family(id) AS (
  SELECT to_regclass($1)::oid
  UNION
  SELECT i.inhrelid FROM pg_inherits AS i JOIN family AS f ON i.inhparent = f.id
  JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE c.relispartition OR NOT EXISTS (SELECT FROM unnest($2::text[]) AS t(name) WHERE to_regclass(t.name) = c.oid)
)
SELECT c.oid::regclass::text AS table,
  CASE WHEN c.oid = to_regclass($1) THEN 'table' WHEN c.relkind = 'f' THEN 'foreign table'
    WHEN c.relispartition THEN 'partition' ELSE 'child' END AS kind,
  ARRAY(SELECT jsonb_build_object('name', t.tgname, 'enabled', t.tgenabled, 'before', (t.tgtype & 3) = 3,
      'whole', t.tgqual IS NULL AND t.tgattr::text = '' AND t.tgtype IN (31, 34), 'called', n.nspname || '.' || p.proname,
      'args', encode(t.tgargs, 'hex'))
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE t.tgrelid = c.oid AND NOT (t.tgisinternal AND t.tgparentid = 0) ORDER BY t.tgname) AS triggers
FROM family AS f JOIN pg_class AS c ON c.oid = f.id
ORDER BY c.oid <> to_regclass($1), 1`;

const guards: Check<PostgresSubject> = {
  name: 'guards',
  look: ofEach(async ({ ask, models, migrates }, { model, table, fence, guard }) => {
    const found = await ask<Relation>(FAMILY, [table, fencesOf(models).map((each) => each.table)]);
    // A missing table is reported by another check.
    const family: readonly Relation[] = found.length > 0 ? found : [{ table, kind: 'table', triggers: [] }];
    const row = family[0]?.triggers.find(({ name }) => name === GUARD);
    const isBare = !family[0]?.triggers.some(({ name }) => name === GUARD || name === GUARD_TRUNCATE);
    if (guard === undefined && isBare) {
      if (migrates) return ok(`${model}: no guard, as in the migrations.`);
      return warning(`${model}: no guard, so only direct writes by Prisma are held to the fence.`, PUSHED);
    }
    const expected = { column: fence, policy: guard?.policy ?? (row && argsOf(row)[1]) ?? 'allow' };
    for (const relation of family) {
      const defect = defectOf(relation, expected, migrates);
      if (defect !== undefined) return { ...defect, message: `${model}: ${defect.message}` };
    }
    const below = family.length > 1 ? `, with ${family.length - 1} below it` : '';
    return ok(`${model}: guarded (${expected.policy})${below}.`);
  }),
};

function defectOf({ table, kind, triggers }: Relation, expected: Guard, migrates: boolean): Finding | undefined {
  const where = kind === 'table' ? table : `the ${kind} ${table}`;
  const make = [rowTrigger(table, expected), truncateTrigger(table, expected)].map((sql) =>
    sql.replaceAll(/\n\s*/g, ' '),
  );
  const again = make.join('; ');
  const [row, truncate] = [GUARD, GUARD_TRUNCATE].map((wanted) => triggers.find(({ name }) => name === wanted));
  if (row === undefined && truncate === undefined) {
    const remedy = migrates ? `${deploy(true)}. If nothing is left to deploy: ${again}` : PUSHED;
    return fault(`the guard is missing on ${where}.`, remedy);
  }
  // A foreign table needs no TRUNCATE trigger: its rows are on another server, where they can be truncated in any case.
  if (row === undefined || (truncate === undefined && kind !== 'foreign table')) {
    // A partition has the trigger of its rows from its parent, so it is not made again there.
    const [missing, remedy] = row === undefined ? [GUARD, make[0]] : [GUARD_TRUNCATE, make[1]];
    return fault(`of the guard's two triggers, ${missing} is missing on ${where}.`, `${remedy}`);
  }
  for (const trigger of truncate === undefined ? [row] : [row, truncate]) {
    const { name, enabled, whole, called } = trigger;
    const args = argsOf(trigger);
    const isRow = name === GUARD;
    const should = isRow ? 'fenced_lock.guard' : 'fenced_lock.guard_truncate';
    const policy = args[isRow ? 1 : 0];
    if (enabled === 'D' || enabled === 'R') {
      return fault(`the trigger ${name} is disabled on ${where}.`, `ALTER TABLE ${table} ENABLE TRIGGER ${name}`);
    }
    if (!whole) return fault(`the trigger ${name} does not fire for every write on ${where}.`, again);
    if (called !== should) return fault(`the trigger ${name} calls ${called} on ${where}.`, again);
    if (isRow && args[0] !== expected.column) {
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

/** Guards on tables that no model has a fence for ($1). $3: the tables of models without a fence, of which this may be one. */
const LEFT = `
SELECT g.id::regclass::text AS table, g.fence AS column, a.attnum IS NOT NULL AS "hasColumn",
  (SELECT min(u.name) FROM unnest($3::text[]) AS u(name) WHERE to_regclass(u.name) = g.id) AS known
FROM (SELECT t.tgrelid AS id,
        convert_from(substring(t.tgargs FROM 1 FOR position('\\x00'::bytea IN t.tgargs) - 1), getdatabaseencoding()) AS fence
      FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
      WHERE t.tgname = $2 AND n.nspname = 'fenced_lock' AND p.proname = 'guard' AND t.tgnargs > 0
        AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = t.tgrelid)) AS g
LEFT JOIN pg_attribute AS a ON a.attrelid = g.id AND a.attname = g.fence AND NOT a.attisdropped
WHERE NOT EXISTS (SELECT FROM unnest($1::text[]) AS f(name) WHERE to_regclass(f.name) = g.id)
ORDER BY 1`;

interface LeftGuard {
  readonly table: string;
  readonly column: string;
  readonly hasColumn: boolean;
  readonly known: string | null;
}

/** Tables with the guard of TRUNCATE alone, which DETACH PARTITION leaves: it takes the row trigger, which is the parent's, away. */
const DETACHED = `
SELECT t.tgrelid::regclass::text AS table
FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE t.tgname = $2 AND n.nspname = 'fenced_lock' AND p.proname = 'guard_truncate'
  AND NOT EXISTS (SELECT FROM pg_trigger AS r WHERE r.tgrelid = t.tgrelid AND r.tgname = $3)
  AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = t.tgrelid)
  AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS f(name) WHERE to_regclass(f.name) = t.tgrelid)
ORDER BY 1`;

/** Guards that are left on tables whose models have lost the field. The next migration of Prisma drops its column. */
const left: Check<PostgresSubject> = {
  name: 'guards left',
  async look({ ask, models }) {
    const unfenced = models instanceof Problem ? [] : models.filter(({ fence }) => fence === undefined);
    const tables = [fencesOf(models), unfenced].map((some) => some.map(({ table }) => table));
    const rows = await ask<LeftGuard>(LEFT, [tables[0], GUARD, tables[1]]);
    const found = rows.flatMap(({ table, column, hasColumn, known }) => {
      const of = unfenced.find((model) => model.table === known);
      // A table of another project is well if its column is there. The fence may have another name than doctor was told.
      if (hasColumn && (of === undefined || of.columns.includes(column))) return [];
      const named = of === undefined ? '' : `${of.model}: `;
      const remedy =
        of === undefined
          ? `Add the column again, or DROP TRIGGER ${GUARD} ON ${table}; DROP TRIGGER ${GUARD_TRUNCATE} ON ${table}`
          : `Put the field back (\`${column} BigInt @default(0)\`) and deploy its column; or npx fenced-lock remove-fence ` +
            `${of.model}, then npx prisma migrate deploy`;
      if (!hasColumn) {
        return fault(`${named}${table} has a guard, and its column "${column}" is gone: each write fails.`, remedy);
      }
      return warning(
        `${named}${table} has a guard, and the model has no field for its column "${column}": the next migration of Prisma ` +
          'drops the column, and then each write fails.',
        remedy,
      );
    });
    for (const { table } of await ask<{ table: string }>(DETACHED, [tables[0], GUARD_TRUNCATE, GUARD])) {
      const message = `${table} has the guard of TRUNCATE alone, as a partition that was detached: its rows have none.`;
      found.push(warning(message, `DROP TRIGGER ${GUARD_TRUNCATE} ON ${table}`));
    }
    return found.length > 0 ? found : ok('No guard is on a table whose fence is gone.');
  },
};

export const fenceChecks = [columns, guards, left];
