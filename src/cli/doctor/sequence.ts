import { type Check, fault, ok } from './check.js';
import { position } from './position.js';
import type { PostgresSubject } from './subject.js';

interface Definition {
  readonly kind: string;
  readonly persistence: string;
  readonly type: string;
  readonly increment: string;
  readonly cache: string;
  readonly cycle: boolean;
}

/** The required definition of the sequence, and what happens with another one. */
const REQUIRED: ReadonlyArray<readonly [(is: Definition) => boolean, string]> = [
  [(is) => is.type === 'bigint', 'it does not count in bigint: tokens would come to an end'],
  [(is) => is.increment === '1', 'it does not count by 1'],
  [(is) => is.cache === '1', 'it has a CACHE: sessions would hand out tokens that they kept back, out of order'],
  [(is) => !is.cycle, 'it has CYCLE: tokens would begin again'],
  [(is) => is.persistence === 'p', 'it is UNLOGGED: after a crash tokens would be issued twice'],
];

const definition: Check<PostgresSubject> = {
  name: 'sequence',
  essential: true,
  async look({ ask, database, fix }) {
    const [is] = await ask<Definition>(
      `SELECT c.relkind::text AS kind, c.relpersistence::text AS persistence, s.seqtypid::regtype::text AS type,
         s.seqincrement::text AS increment, s.seqcache::text AS cache, s.seqcycle AS cycle
       FROM pg_class AS c LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid
       WHERE c.oid = to_regclass('fenced_lock.token')`,
    );
    if (is?.kind !== 'S') return fault('fenced_lock.token is not a sequence.', 'Restore it from the migration.');
    const wrong = REQUIRED.filter(([holds]) => !holds(is)).map(([, problem]) => problem);
    if (wrong.length === 0) return ok('CACHE 1, NO CYCLE, by 1.');
    const logged = is.persistence === 'p' ? '' : '; ALTER SEQUENCE fenced_lock.token SET LOGGED';
    const mend = `ALTER SEQUENCE fenced_lock.token AS bigint NO MAXVALUE INCREMENT 1 CACHE 1 NO CYCLE${logged}`;
    if (!fix) return fault(`Of fenced_lock.token: ${wrong.join('; ')}.`, `doctor --fix, or ${mend}`);
    await database.query(mend);
    return ok(`Repaired: ${wrong.join('; ')}.`);
  },
};

export const sequenceChecks: readonly Check<PostgresSubject>[] = [definition, position];
