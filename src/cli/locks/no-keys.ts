import { messageOf, Problem } from '../problem.js';
import { refused } from '../servers/both.js';
import type { PostgresServer } from '../servers/postgres.js';
import { lastToken } from './state.js';

/** What is said where Redis shows no key. */
export const NO_KEY = 'No key is held or waited for.';
/** What is said where a filter leaves no key. */
export const NO_MATCH = 'No key matches.';

/**
 * Why nobody can take a key in this database, such as a schema that is missing; `undefined` if Postgres answers. A list
 * without keys asks Postgres nothing, so it would look the same before the first migration.
 */
export async function hindrance(database: PostgresServer): Promise<string | undefined> {
  try {
    // Any key will do.
    await lastToken('fenced-lock', database);
    return undefined;
  } catch (error) {
    const reason = refused(error, database);
    return reason instanceof Problem ? reason.message : `PostgreSQL at ${database.shown}: ${messageOf(error)}.`;
  }
}
