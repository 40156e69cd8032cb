import type { Context } from '../context.js';
import { restrictTo } from '../migrations/grants.js';
import { applicationFunctions, packagedScript } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { FROM_PUSH, onlyRole, PUSHED } from '../project/remedies.js';
import { carryOut, type FileOptions, nothingToDo, open } from './files.js';

const BRIEF = 'the objects of the schema fenced_lock; --print shows the SQL';

/** Adds the database objects to the project, as one migration; where it has them, the grants alone. */
export async function init(context: Context, options: FileOptions & { role?: readonly string[] }): Promise<void> {
  const project = await open(context, options);
  const { history } = project;
  const { version, sql } = await packagedScript();
  const there = history.objects;
  if (there !== undefined && there.version !== version) throw otherVersion(there.version, version);
  const known = history.roles;
  const roles = [...new Set(options.role)].filter((role) => !known.includes(role));
  const grants = roles.length === 0 ? [] : [restrictTo(roles, applicationFunctions(sql))];
  if (there === undefined) {
    return await carryOut(context, project, options, {
      command: 'init',
      migration: { name: 'fenced_lock', sql: [sql, ...grants].join('\n') },
      brief: BRIEF,
      next: [
        'Next: npx fenced-lock add-fence <Model>, then npx prisma migrate deploy && npx prisma generate.',
        ...(roles.length === 0
          ? [`Every role that may connect may lock. Best let one alone: ${onlyRole('migrate')}.`]
          : []),
        ...(history.isEmpty ? maybePushed(history.shown) : []),
      ],
      data: { version, ...(roles.length > 0 && { roles }) },
    });
  }
  if (grants.length === 0) {
    const objects = `the migration ${there.name} has the objects already.`;
    return nothingToDo(context, 'init', options.role ? `${options.role.join(', ')} may lock already.` : objects);
  }
  await carryOut(context, project, options, {
    command: 'init',
    migration: { name: 'fenced_lock_roles', sql: grants.join('') },
    next: ['Next: npx prisma migrate deploy.'],
    data: { roles },
  });
}

/** Upgrades the objects to this package's version by a new migration: an applied migration is never edited. */
export async function upgrade(context: Context, options: FileOptions): Promise<void> {
  const project = await open(context, options);
  const { objects, isEmpty } = project.history;
  if (objects === undefined) {
    const pushed = isEmpty ? ` With prisma db push: ${PUSHED}.` : '';
    throw new Problem(`The objects are in no migration yet: npx fenced-lock init.${pushed}`);
  }
  const { version, sql } = await packagedScript();
  if (objects.version > version) throw otherVersion(objects.version, version);
  if (objects.version === version) {
    const why = `the migrations have version ${version} of the objects, as this package does.`;
    return nothingToDo(context, 'upgrade', why);
  }
  await carryOut(context, project, options, {
    command: 'upgrade',
    // The script keeps the rights: roles that may lock may also call new functions.
    migration: { name: `fenced_lock_${version}`, sql },
    brief: BRIEF,
    next: ['Next: npx prisma migrate deploy.'],
    data: { from: objects.version, to: version },
  });
}

function otherVersion(installed: number, version: number): Problem {
  const first = installed > version ? 'update the package' : 'first npx fenced-lock upgrade';
  return new Problem(
    `The migrations have version ${installed} of the objects, and this package brings ${version}: ${first}.`,
  );
}

/** Prisma applies no migration to a database that has tables and no history. */
const maybePushed = (folder: string) => [
  'Careful: this is the first migration of the project. If prisma db push made its tables, migrate deploy refuses the',
  `  database (P3005): delete ${folder} again, and run ${PUSHED}.`,
  `  To go over to migrations instead: ${FROM_PUSH}`,
  '  If the tables are not made yet, make them before add-fence: npx prisma migrate dev --name tables.',
];
