import type { Context } from '../context.js';
import { packagedMigrations } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { carryOut, type FileOptions, open } from './files.js';

/** Puts the database side into the project, as one migration. */
export async function init(context: Context, options: FileOptions): Promise<void> {
  const { history } = await open(context, options);
  if (history.initial !== undefined) {
    throw new Problem(
      `The migration ${history.initial} has the objects already. To bring them to this package's version: npx fenced-lock upgrade.`,
    );
  }
  const packaged = await packagedMigrations();
  const sql = packaged.map(({ sql }) => sql).join('\n');
  const next = ['Next: npx prisma migrate deploy, then npx fenced-lock add-fence <Model>.'];
  await carryOut(context, history, options, {
    command: 'init',
    schema: [],
    migration: { name: 'fenced_lock', sql },
    next,
    data: { version: packaged.at(-1)?.version },
  });
}
