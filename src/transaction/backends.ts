import type { Database, Row, TextRow } from '../database/database.js';
import { END_BACKEND, END_BLOCKERS } from '../database/sql.js';
import type { Admission } from './admission.js';
import type { Call } from './call.js';

type Ending = Pick<Call<unknown, unknown>, 'emit' | 'leases' | 'room'> & {
  readonly database: Pick<Database<unknown>, 'rescue'>;
};

/** Ends our own transaction's backend, from outside: what is in flight on it fails, and nothing of it lands. */
export async function endBackend(call: Ending, { pid, xid, epoch }: Admission): Promise<void> {
  await end(call, () => call.database.rescue(END_BACKEND, [pid, xid, epoch ?? null]));
}

/** Ends the transactions that `own`, in its admission, waits for, if their leases were of our waiting room and older than ours. */
export async function endBlockers(call: Ending, own: TextRow | undefined): Promise<void> {
  // Where others may have the key too, nobody's transaction is older than our right to it.
  if (!Number.isFinite(call.leases.age)) return;
  await end(call, () => call.database.rescue(END_BLOCKERS, [own?.[0], call.leases.age, own?.[1], call.room ?? null]));
}

/**
 * Never rejects. Without the right to end them, or without a connection, they end by their own time limits, and
 * whoever asked tries again or waits.
 */
async function end({ emit, leases }: Ending, send: () => Promise<readonly Row[]>): Promise<void> {
  const rows = await send().catch(() => []);
  for (const { pid } of rows) emit({ type: 'backend-ended', key: leases.key, pid: Number(pid) });
}
