import { GUARD, GUARD_TRUNCATE, type Guard, triggersOf } from '../migrations/guard-sql.js';
import { identifier } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import { NoProject } from '../project/locate.js';
import { deploy, PUSHED, type Way } from '../project/remedies.js';
import {
  type Checks,
  type Compared,
  type Finding,
  type Found,
  fault,
  ok,
  type PostgresSubject,
  warning,
} from './check.js';

type FencedModel = Compared & { readonly fence: string };

export function fencedOf({ models }: PostgresSubject): FencedModel[] {
  return models.filter((model): model is FencedModel => model.fence !== undefined);
}

/** Looks at each fenced model. A text says that all is well with it. */
async function ofEach(
  subject: PostgresSubject,
  look: (fenced: FencedModel) => Promise<string | Finding>,
): Promise<Found> {
  const { project } = subject;
  if (project instanceof Problem && !(project instanceof NoProject)) {
    return { status: 'skipped', message: `Not compared with a schema. ${project.message}` };
  }
  const found: Finding[] = [];
  for (const fenced of fencedOf(subject)) {
    const seen = await look(fenced);
    const finding = typeof seen === 'string' ? ok(seen) : seen;
    found.push({ ...finding, message: `${fenced.name}: ${finding.message}` });
  }
  if (found.length > 0) return found;
  return project instanceof Problem ? 'No table has a guard.' : 'No model has a fence.';
}

/** A table, partition or child, with its triggers. */
interface Relation {
  readonly table: string;
  readonly kind: 'table' | 'partition' | 'child' | 'foreign table';
  readonly triggers: ReadonlyArray<{
    readonly name: string;
    readonly enabled: string;
    readonly before: boolean;
    readonly definition: string;
    readonly policy: string;
  }>;
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
      'definition', pg_get_triggerdef(t.oid), 'policy', substring(pg_get_triggerdef(t.oid) FROM '''(\\w+)''\\)$'))
    FROM pg_trigger AS t
    WHERE t.tgrelid = c.oid AND NOT (t.tgisinternal AND t.tgparentid = 0) ORDER BY t.tgname) AS triggers
FROM family AS f JOIN pg_class AS c ON c.oid = f.id
ORDER BY c.oid <> to_regclass($1), 1`;

function defectOf({ table, kind, triggers }: Relation, expected: Guard, way: Way): Finding | undefined {
  const where = kind === 'table' ? table : `the ${kind} ${table}`;
  const wanted = triggersOf(table, expected).map((sql) => sql.replaceAll(/\n\s*/g, ' '));
  const again = wanted.join('; ');
  const found = [GUARD, GUARD_TRUNCATE].map((name) => ({ name, ...triggers.find((each) => each.name === name) }));
  if (found.every(({ definition }) => definition === undefined)) {
    const deployed = `${deploy('migrate', '')}. If nothing is left to deploy: ${again}`;
    const remedy = { migrate: deployed, push: PUSHED, other: again }[way];
    return fault(`the guard is missing on ${where}.`, remedy);
  }
  for (const [index, { name, enabled, definition }] of found.entries()) {
    // A foreign table needs no TRUNCATE trigger: its rows are on another server, where they can be truncated in any case.
    if (definition === undefined && kind === 'foreign table' && index === 1) continue;
    // A partition has the trigger of its rows from its parent, so it is not made again there.
    const statement = wanted[index] ?? '';
    if (definition === undefined) {
      return fault(`of the guard's two triggers, ${name} is missing on ${where}.`, statement);
    }
    if (enabled === 'D' || enabled === 'R') {
      return fault(`the trigger ${name} is disabled on ${where}.`, `ALTER TABLE ${table} ENABLE TRIGGER ${name}`);
    }
    // As Postgres says it.
    const said = statement
      .replace(' OR REPLACE', '')
      .replace('INSERT OR UPDATE OR DELETE', 'INSERT OR DELETE OR UPDATE');
    if (definition !== said) {
      return fault(`the guard on ${where} is not as the migrations say (${expected.policy}): ${definition}.`, again);
    }
  }
  const later = triggers.find(({ name, before }) => before && name > GUARD);
  if (later === undefined) return undefined;
  return warning(
    `your trigger ${later.name} runs after the guard on ${where}, and may undo what it did.`,
    `ALTER TRIGGER ${identifier(later.name)} ON ${table} RENAME TO a name before ${GUARD}`,
  );
}

/** Guards on tables that no model has a fence for ($1). $2: the tables of models without a fence, of which this may be one. */
const LEFT = `
SELECT g.table_id::regclass::text AS table, g.fence_column AS column, EXISTS (SELECT FROM pg_attribute AS a
    WHERE a.attrelid = g.table_id AND a.attname = g.fence_column AND NOT a.attisdropped) AS "hasColumn",
  (SELECT min(u.name) FROM unnest($2::text[]) AS u(name) WHERE to_regclass(u.name) = g.table_id) AS known
FROM fenced_lock.guards() AS g
WHERE NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = g.table_id)
  AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS f(name) WHERE to_regclass(f.name) = g.table_id)
ORDER BY 1`;

interface LeftGuard {
  readonly table: string;
  readonly column: string;
  readonly hasColumn: boolean;
  readonly known: string | null;
}

export const fenceChecks: Checks<PostgresSubject> = {
  fences: (subject) =>
    ofEach(subject, async ({ table, fence: column }) => {
      const [found] = await subject.ask<{ there: boolean; is: string | null }>(
        `SELECT to_regclass($1) IS NOT NULL AS there, format_type(a.atttypid, a.atttypmod)
           || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
           || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS is
         FROM (SELECT 1) AS one
         LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum`,
        [table, column],
      );
      if (!found?.there) return fault(`the table ${table} is missing.`, deploy(subject.way, 'Make it.'));
      const { is } = found;
      if (is === null) {
        const add = `ALTER TABLE ${table} ADD COLUMN ${identifier(column)} BIGINT NOT NULL DEFAULT 0`;
        return fault(`the column "${column}" is missing in ${table}.`, deploy(subject.way, add));
      }
      if (/^bigint NOT NULL DEFAULT '?0'?(::bigint)?$/.test(is)) return `"${column}" is bigint NOT NULL DEFAULT 0.`;
      const [name, alter] = [identifier(column), `ALTER COLUMN ${identifier(column)}`];
      return fault(
        `"${column}" is ${is}, not bigint NOT NULL DEFAULT 0.`,
        `UPDATE ${table} SET ${name} = 0 WHERE ${name} IS NULL; ALTER TABLE ${table} ${alter} TYPE bigint, ` +
          `${alter} SET DEFAULT 0, ${alter} SET NOT NULL`,
      );
    }),

  guards: (subject) =>
    ofEach(subject, async ({ name: model, table, fence, guard }) => {
      const { ask, way } = subject;
      const found = await ask<Relation>(FAMILY, [table, fencedOf(subject).map((each) => each.table)]);
      // A missing table is reported by another check.
      const family: readonly Relation[] = found.length > 0 ? found : [{ table, kind: 'table', triggers: [] }];
      const ours = family[0]?.triggers.find(({ name }) => name === GUARD || name === GUARD_TRUNCATE);
      if (guard === undefined && ours === undefined) {
        const remedy = way === 'migrate' ? `npx fenced-lock add-fence ${model}` : PUSHED;
        return warning('no guard, so only direct writes by Prisma are held to the fence.', remedy);
      }
      const expected = { column: fence, policy: guard?.policy ?? ours?.policy ?? 'allow' };
      const defect = family.map((relation) => defectOf(relation, expected, way)).find((each) => each !== undefined);
      return (
        defect ?? `guarded (${expected.policy})${family.length > 1 ? `, with ${family.length - 1} below it` : ''}.`
      );
    }),

  /** Guards that are left on tables whose models have lost the field. The next migration of Prisma drops its column. */
  async 'guards left'(subject) {
    const unfenced = subject.models.filter(({ fence }) => fence === undefined);
    const tables = [fencedOf(subject), unfenced].map((some) => some.map(({ table }) => table));
    const found = (await subject.ask<LeftGuard>(LEFT, tables)).flatMap(({ table, column, hasColumn, known }) => {
      const model = unfenced.find((each) => each.table === known);
      // A table of another project is well if its column is there. The fence may have another name than doctor was told.
      if (hasColumn && model?.columns.includes(column) !== false) return [];
      const remedy =
        model === undefined
          ? `Add the column again, or DROP TRIGGER ${GUARD} ON ${table}; DROP TRIGGER ${GUARD_TRUNCATE} ON ${table}`
          : `Put the field back (\`${column} BigInt @default(0)\`) and deploy its column; or npx fenced-lock remove-fence ` +
            `${model.name}, then npx prisma migrate deploy`;
      const what = `${model ? `${model.name}: ` : ''}${table} has a guard, and`;
      if (!hasColumn) return fault(`${what} its column "${column}" is gone: each write fails.`, remedy);
      return warning(
        `${what} the model has no field for its column "${column}": the next migration of Prisma drops the column, and then ` +
          'each write fails.',
        remedy,
      );
    });
    return found.length > 0 ? found : 'No guard is on a table whose fence is gone.';
  },
};
