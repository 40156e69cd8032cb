import { OVERDUE, within } from '../base/clock.js';
import type { Connection, Row, TextRow } from '../database/database.js';
import { END_BACKEND, END_BLOCKERS } from '../database/sql.js';
import type { Admission } from './admission.js';
import type { CallContext } from './call.js';
import type { Gate } from './gate.js';
import { isClosedByPostgres, isLoss } from './rolled-back.js';

/** How long Postgres may take to answer, in addition to the time that it was asked to wait; milliseconds. */
export const ANSWER_TIME = 2_000;
/** Grace period for statements in flight after an abort, before their backend is ended; milliseconds. */
const DRAIN_GRACE = 50;

/** The waiting room whose transactions a call may end as blockers. */
export function roomOf({ parts, takes }: CallContext): number | undefined {
  return takes ? undefined : parts.roomId;
}

/**
 * Ends the backend of this call's own transaction, over the rescue connection. Its statements in flight fail and have
 * no effect.
 */
export async function endBackend(call: CallContext, { pid, xid, epoch }: Admission): Promise<void> {
  await end(call, () => call.database.rescue(END_BACKEND, [pid, xid, epoch ?? null]));
}

/**
 * Ends the transactions that block the admission on backend `own`, if their leases were in the same waiting room and
 * are older than this call's lease or began before the moment of `takes`.
 */
export async function endBlockers(call: CallContext, own: TextRow | undefined): Promise<void> {
  // With an infinite age, another caller may hold the key, too, and its transaction must not be ended.
  const age = Number.isFinite(call.leases.age) ? call.leases.age : null;
  const foundAt = call.takes?.foundAt ?? null;
  if (age === null && foundAt === null) return;
  const values = [own?.[0], age, own?.[1], roomOf(call) ?? null, foundAt];
  await end(call, () => call.database.rescue(END_BLOCKERS, values));
}

/** Waits for statements in flight. `statement_timeout` bounds them. After an abort, their backend is ended. */
export async function drain(
  call: CallContext,
  gate: Gate,
  connection: Connection,
  admission: Admission,
): Promise<void> {
  if (gate.busy) {
    await call.abort.race(gate.idle()).catch(() => {});
    // Most statements end within the grace period, and then the connection can be used again.
    if (gate.busy) await within(gate.idle(), DRAIN_GRACE);
    if (gate.busy) {
      await endBackend(call, admission);
      if ((await within(gate.idle(), ANSWER_TIME)) === OVERDUE) connection.destroy();
      await gate.idle();
    }
  }
  // If the connection broke, Postgres may not know it yet and would keep the key's row locked for the lease time.
  const failed = gate.failure?.error;
  const { closedBy } = connection;
  const isBroken = closedBy !== undefined || isLoss(call.database, failed);
  if (isBroken && ![closedBy, failed].some((error) => isClosedByPostgres(call.database, error))) {
    await within(endBackend(call, admission), ANSWER_TIME);
  }
}

/**
 * Never rejects. If the role may not end the backends, or the rescue connection fails, their own time limits end them.
 * The caller tries again or waits.
 */
async function end({ parts, leases }: CallContext, send: () => Promise<readonly Row[]>): Promise<void> {
  const rows = await send().catch(() => []);
  for (const { pid } of rows) parts.emit({ type: 'backend-ended', key: leases.key, pid: Number(pid) });
}
