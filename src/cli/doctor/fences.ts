import { Problem } from '../problem.js';
import { deploy } from '../project/remedies.js';
import { type Check, type Finding, fault, ok } from './check.js';
import { detachedPartitions, familyOf, guardFinding, leftGuards } from './guards.js';
import type { ExpectedFence, PostgresSubject } from './subject.js';

interface Column {
  readonly found: boolean;
  readonly type: string | null;
  readonly required: boolean | null;
  readonly initial: string | null;
}

const columns: Check<PostgresSubject> = {
  name: 'fences',
  look: ({ ask, fences, migrates }) =>
    forEach(fences, 'No model has a fence.', async (fence) => {
      const [is] = await ask<Column>(
        `SELECT to_regclass($1) IS NOT NULL AS found, a.atttypid::regtype::text AS type, a.attnotnull AS required,
           pg_get_expr(d.adbin, d.adrelid) AS initial
         FROM (SELECT 1) AS one
         LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum`,
        [fence.table, fence.column],
      );
      return columnFinding(fence, is, deploy(migrates));
    }),
};

function columnFinding({ model, table, column }: ExpectedFence, is: Column | undefined, remedy: string): Finding {
  if (is === undefined || !is.found) return fault(`${model}: the table ${table} is missing.`, remedy);
  const alter = `ALTER TABLE ${table} ALTER COLUMN "${column}"`;
  if (is.type === null) return fault(`${model}: the column "${column}" is missing in ${table}.`, remedy);
  if (is.type !== 'bigint') {
    return fault(
      `${model}: "${column}" is ${is.type}, not bigint.`,
      `Write \`BigInt @default(0)\` in the model, then npx prisma migrate dev; or ${alter} TYPE bigint`,
    );
  }
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
  look: async ({ ask, fences, migrates }) => {
    const fenced = tablesOf(fences);
    return await forEach(fences, 'No model has a fence.', async (fence) =>
      guardFinding(fence, await familyOf(ask, fence.table, fenced), migrates),
    );
  },
};

function tablesOf(fences: PostgresSubject['fences']): string[] {
  return fences instanceof Problem ? [] : fences.map(({ table }) => table);
}

async function forEach(
  fences: PostgresSubject['fences'],
  none: string,
  look: (fence: ExpectedFence) => Promise<Finding>,
): Promise<Finding[]> {
  if (fences instanceof Problem)
    return [{ status: 'skipped', message: `Not compared with a schema. ${fences.message}` }];
  const found: Finding[] = [];
  for (const fence of fences) found.push(await look(fence));
  return found.length > 0 ? found : [ok(none)];
}

/** Guards that are left on tables whose models have lost the field. The next migration of Prisma drops its column. */
const left: Check<PostgresSubject> = {
  name: 'guards left',
  look: async ({ ask, fences, unfenced }) => {
    const fenced = tablesOf(fences);
    const found = [...(await leftGuards(ask, fenced, unfenced)), ...(await detachedPartitions(ask, fenced))];
    return found.length > 0 ? found : [ok('No guard is on a table whose fence is gone.')];
  },
};

export const fenceChecks = [columns, guards, left];
