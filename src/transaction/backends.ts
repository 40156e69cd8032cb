import type { Database, Row, TextRow } from '../database/database.js';
import { END_BACKEND, END_BLOCKERS } from '../database/sql.js';
import type { Admission } from './admission.js';
import type { Call } from './call.js';

type Ending = Pick<Call<unknown, unknown>, 'emit' | 'leases' | 'room'> & {
  readonly database: Pick<Database<unknown>, 'rescue'>;
};

/**
 * Ends the backend of this call's own transaction, over the rescue connection. Its statements in flight fail and have
 * no effect.
 */
export async function endBackend(call: Ending, { pid, xid, epoch }: Admission): Promise<void> {
  await end(call, () => call.database.rescue(END_BACKEND, [pid, xid, epoch ?? null]));
}

/**
 * Ends the transactions that block the admission on backend `own`, if their leases were in the same waiting room and
 * are older than this call's lease.
 */
export async function endBlockers(call: Ending, own: TextRow | undefined): Promise<void> {
  // With an infinite age, another caller may hold the key, too, and its transaction must not be ended.
  if (!Number.isFinite(call.leases.age)) return;
  await end(call, () => call.database.rescue(END_BLOCKERS, [own?.[0], call.leases.age, own?.[1], call.room ?? null]));
}

/**
 * Never rejects. If the role may not end the backends, or the rescue connection fails, their own time limits end them.
 * The caller tries again or waits.
 */
async function end({ emit, leases }: Ending, send: () => Promise<readonly Row[]>): Promise<void> {
  const rows = await send().catch(() => []);
  for (const { pid } of rows) emit({ type: 'backend-ended', key: leases.key, pid: Number(pid) });
}
