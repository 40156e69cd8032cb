import { DOCS } from '../../base/errors.js';

/** What a project without migrations runs: all of ours in one script, which may be applied again. */
export const PUSHED = 'npx fenced-lock sql | npx prisma db execute --stdin';

/** What brings a database to what the project says. `migrates`: whether the project has migrations. */
export function deploy(migrates: boolean): string {
  return migrates ? 'npx prisma migrate deploy' : `npx prisma db push, then ${PUSHED}`;
}

/** What lets only the application's role lock. */
export function onlyRole(migrates: boolean): string {
  return migrates
    ? "npx fenced-lock init --role <the application's role>, then npx prisma migrate deploy"
    : "npx fenced-lock sql --role <the application's role> | npx prisma db execute --stdin";
}

/** Where the way from a pushed database to migrations is described. */
export const FROM_PUSH = `${DOCS}guides/migrations.md#from-db-push-to-migrations`;
