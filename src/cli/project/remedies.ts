import { DOCS } from '../../base/errors.js';

/** What a project without migrations runs: all of ours in one script, which may be applied again. */
export const PUSHED = 'npx fenced-lock sql | npx prisma db execute --stdin';

/** How the database side gets into the database: Prisma's migrations, its `db push`, or the migrations of another tool. */
export type Way = 'migrate' | 'push' | 'other';

const printed = (options = '') => `apply what npx fenced-lock sql${options} prints`;

/** What makes the objects, or those of this version. */
export const objects = (way: Way, ofPrisma: string) =>
  ({ migrate: ofPrisma, push: PUSHED, other: `${printed()}; with Prisma: ${ofPrisma}` })[way];

/** What brings a table to what the project says. `statements`: where no project says it. */
export const deploy = (way: Way, statements: string) =>
  ({ migrate: 'npx prisma migrate deploy', push: `npx prisma db push, then ${PUSHED}`, other: statements })[way];

/** What lets only the application's role lock. */
export const onlyRole = (way: Way) =>
  ({
    migrate: "npx fenced-lock init --role <the application's role>, then npx prisma migrate deploy",
    push: "npx fenced-lock sql --role <the application's role> | npx prisma db execute --stdin",
    other: printed(" --role <the application's role>"),
  })[way];

/** Where the way from a pushed database to migrations is described. */
export const FROM_PUSH = `${DOCS}guides/migrations.md#from-db-push-to-migrations`;
