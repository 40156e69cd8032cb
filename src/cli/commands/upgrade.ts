import type { Context } from '../context.js';
import { type Packaged, packagedScript } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';
import { carryOut, type FileOptions, nothingToDo, open } from './files.js';

/** Upgrades the objects to this package's version by a new migration: an applied migration is never edited. */
export async function upgrade(
  context: Context,
  options: FileOptions,
  packaged: () => Promise<Packaged> = packagedScript,
): Promise<void> {
  const { history } = await open(context, options);
  const installed = history.version;
  if (installed === undefined) {
    const pushed = history.isEmpty ? ` With prisma db push: ${PUSHED}.` : '';
    throw new Problem(`The objects are in no migration yet: npx fenced-lock init.${pushed}`);
  }
  if (installed === 0) {
    throw new Problem(
      `The migration ${history.initial} was copied from a package that had no versions yet, so it is unknown what it lacks. ` +
        'Drop the schema fenced_lock and that migration, and run npx fenced-lock init.',
    );
  }
  const { version: current, sql } = await packaged();
  if (installed > current) {
    throw new Problem(
      `The migrations have version ${installed} of the objects, and this package brings ${current}: update the package.`,
    );
  }
  if (installed === current) {
    nothingToDo(context, 'upgrade', `the migrations have version ${current} of the objects, as this package does.`);
    return;
  }
  await carryOut(context, history, options, {
    command: 'upgrade',
    schema: [],
    // The script keeps the rights: roles that may lock may also call new functions.
    migration: { name: `fenced_lock_${current}`, sql },
    brief: 'the objects of the schema fenced_lock; --print shows the SQL',
    next: ['Next: npx prisma migrate deploy.'],
    data: { from: installed, to: current },
  });
}
