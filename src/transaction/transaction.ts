import type { LockLostError } from '../base/errors.js';
import { Attempt } from './attempt.js';
import type { Call } from './call.js';
import { NO_EARLIER, Repetition } from './repetition.js';

/**
 * Runs the caller's work in a transaction that Postgres has admitted. Where `retries` allows it, a conflict that may
 * have passed makes the work run again in a new transaction with a new token.
 *
 * A lost lease, and the caller's signal, abort it. Closing the client aborts it until it is admitted.
 *
 * @returns the result of the work, only if its transaction has committed.
 */
export async function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { parts, leases, abort } = call;
  let repetition: Repetition | undefined;
  let attempt: Attempt<Tx, R> | undefined;
  const unfollow = abort.follow(call.options.signal);
  const user = { lost: (loss: LockLostError) => abort.abort(loss), beat: () => attempt?.beat() };
  leases.attach(user);
  if (leases.loss) abort.abort(leases.loss);
  const turnAway = (error: unknown) => {
    if (!repetition?.hasBegun && !attempt?.admitted) abort.abort(error);
  };
  const forget = call.whileClosing ? undefined : parts.room.untilAdmitted(leases.key, turnAway);
  try {
    for (let { opening } = call; ; opening = undefined) {
      attempt = new Attempt(call, opening, repetition?.earlier ?? NO_EARLIER);
      try {
        return await attempt.run();
      } catch (error) {
        if (attempt.admitted && call.options.retries > 0) call.handover?.runsAgain();
        repetition ??= new Repetition(call);
        await repetition.after(error, { admitted: attempt.admitted, wasAhead: opening !== undefined });
      }
    }
  } finally {
    forget?.();
    unfollow();
    leases.detach(user);
  }
}
