import type { Context } from '../context.js';
import { restrictTo } from '../migrations/grants.js';
import { applicationFunctions, packagedScript } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import type { History } from '../project/migration-history.js';
import { FROM_PUSH, onlyRole, PUSHED } from '../project/remedies.js';
import { carryOut, type FileOptions, nothingToDo, open } from './files.js';

export interface InitOptions extends FileOptions {
  /** The roles that may lock. Without any, all roles may. */
  readonly role?: readonly string[];
}

/** Prisma applies no migration to a database that has tables and no history. */
const maybePushed = (folder: string) => [
  'Careful: this is the first migration of the project. If prisma db push made its tables, migrate deploy refuses the',
  `  database (P3005): delete ${folder} again, and run ${PUSHED}.`,
  `  To go over to migrations instead: ${FROM_PUSH}`,
  '  If the tables are not made yet, make them before add-fence: npx prisma migrate dev --name tables.',
];

/** Adds the database objects to the project, as one migration. */
export async function init(context: Context, options: InitOptions): Promise<void> {
  const { history } = await open(context, options);
  const roles = [...new Set(options.role)];
  const { version, sql } = await packagedScript();
  if (history.initial !== undefined) {
    if (roles.length > 0) {
      await grantAlone(context, history, options, roles);
      return;
    }
    if (history.version !== version) {
      throw new Problem(
        `The migration ${history.initial} has the objects already, in another version than this package: npx fenced-lock upgrade.`,
      );
    }
    nothingToDo(context, 'init', `the migration ${history.initial} has the objects already.`);
    return;
  }
  await carryOut(context, history, options, {
    command: 'init',
    schema: [],
    migration: {
      name: 'fenced_lock',
      sql: roles.length === 0 ? sql : `${sql}\n${restrictTo(roles, applicationFunctions(sql))}`,
    },
    brief: 'the objects of the schema fenced_lock; --print shows the SQL',
    next: [
      'Next: npx fenced-lock add-fence <Model>, then npx prisma migrate deploy && npx prisma generate.',
      ...(roles.length === 0 ? [`Every role that may connect may lock. Best let one alone: ${onlyRole(true)}.`] : []),
      ...(history.isEmpty ? maybePushed(context.shown(history.folder)) : []),
    ],
    data: { version, ...(roles.length > 0 && { roles }) },
  });
}

async function grantAlone(context: Context, history: History, options: InitOptions, roles: string[]): Promise<void> {
  const there = history.roles;
  const fresh = roles.filter((role) => !there.includes(role));
  if (fresh.length === 0) {
    nothingToDo(context, 'init', `the migrations let ${roles.join(', ')} lock already.`);
    return;
  }
  const { version, sql } = await packagedScript();
  if (history.version !== version) {
    const first = (history.version ?? 0) > version ? 'update the package' : 'first npx fenced-lock upgrade';
    throw new Problem(
      `The migrations have version ${history.version} of the objects, and this package brings ${version}: ${first}.`,
    );
  }
  await carryOut(context, history, options, {
    command: 'init',
    schema: [],
    migration: { name: 'fenced_lock_roles', sql: restrictTo(fresh, applicationFunctions(sql)) },
    next: ['Next: npx prisma migrate deploy.'],
    data: { roles: fresh },
  });
}
