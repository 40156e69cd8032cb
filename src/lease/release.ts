import type { Emit } from '../base/events.js';
import type { Held } from './acquire.js';
import type { Renewal } from './renewal.js';
import type { LeaseStore } from './store.js';

/**
 * Gives a lease back. Nobody waits for it and nobody learns of its failure but the events: the caller's result
 * stands, and a lease that could not be given back ends by itself.
 */
export function release(store: LeaseStore, renewal: Renewal, held: Held, emit: Emit): void {
  const { lease, turn } = held;
  renewal.remove(lease);
  void store.release(lease).catch((error: unknown) => emit({ type: 'release-failed', key: lease.key, error }));
  // After the command has been handed over, so that the next caller's look follows it on the same connection.
  turn.leave();
}
