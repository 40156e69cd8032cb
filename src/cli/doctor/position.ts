import { type Check, fault, ok } from './check.js';
import type { PostgresSubject } from './subject.js';
import { BEYOND, lastDrawn, placesOf, type Token, tokensAbove } from './tokens.js';
import { wayOut } from './way-out.js';

/** How far a single row may be above all other tokens and still count as drawn by a lock. */
const FAR = 1_000_000n;
/** How many single rows are examined, one above the other. */
const MANY = 20;

export const position: Check<PostgresSubject> = {
  name: 'sequence position',
  async look(subject) {
    const last = await lastDrawn(subject);
    const places = await placesOf(subject);
    const used = (
      await tokensAbove(subject, places, last < BEYOND ? last : 0n, { upTo: BEYOND, limit: MANY })
    ).toSorted((one, other) => Number(other.token - one.token));
    const highest = last < BEYOND ? plausible(used, last, subject.upTo) : used[0];
    const limit = highest?.token ?? (last < BEYOND ? last : 0n);
    const wild = await wayOut(subject, places, limit);
    if (last >= BEYOND) {
      return fault(
        `The sequence is at ${last}, which no lock has reached. When it ends, no lock can be taken.`,
        [
          'Stop all clients',
          // First, because the statements leave everything alone that the sequence has drawn.
          `SELECT setval('fenced_lock.token', ${limit > 0n ? limit : 1n})`,
          ...wild.map(({ statements }) => statements),
        ].join('. Then: '),
      );
    }
    if (wild.length > 0) {
      return wild.map(({ table, rows, token, statements }) =>
        fault(
          `No lock drew the token ${token} that ${table} has in ${rows}: the sequence is at ${last}, and is not set that far. ` +
            'A lock that writes such a row is refused.',
          `As the owner of the schema fenced_lock who may write the table, or as a superuser: ${statements}${token <= BEYOND ? `. If it was drawn: doctor --fix --up-to ${token}` : ''}`,
        ),
      );
    }
    if (highest === undefined) return ok(`At ${last}, and no higher token is in use.`);
    const behind = `The sequence is at ${last}, and token ${limit} is in use in ${highest.table}, as after a restore`;
    if (subject.fix) return ok(`${behind}: set to ${await setForward(subject, limit)}.`);
    return fault(`${behind}: new holders would be refused as stale.`, 'doctor --fix');
  },
};

/**
 * The highest token that a lock has drawn, among the tokens above the sequence (highest first). A restore brings many
 * rows, whose last ones were written close together, and the admissions of their keys. A fence that was set by hand
 * stands alone, far above all others. An admission always counts, because only the owner can write it.
 */
function plausible(used: readonly Token[], last: bigint, upTo: bigint): Token | undefined {
  const admitted = used.find(({ admission }) => admission)?.token ?? 0n;
  const known = [last, admitted, upTo].reduce((one, other) => (one > other ? one : other));
  return used.find(({ token }, at) => {
    if (token <= known + FAR) return true;
    const next = used[at + 1]?.token ?? 0n;
    return next > (token + known) / 2n;
  });
}

/**
 * ALTER SEQUENCE blocks every nextval until this commits. Otherwise a token that is drawn in between could be issued
 * again.
 */
function setForward({ database }: PostgresSubject, highest: bigint): Promise<string> {
  return database.transaction('BEGIN', async (query) => {
    await query(`SET LOCAL lock_timeout = '5s'`);
    await query('ALTER SEQUENCE fenced_lock.token CACHE 1');
    const [row] = await query<{ value: string }>(
      `SELECT setval('fenced_lock.token', greatest(last_value, $1::bigint))::text AS value FROM fenced_lock.token`,
      [highest.toString()],
    );
    return row?.value ?? '';
  });
}
