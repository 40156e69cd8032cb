import { after, stop } from '../../../base/clock.js';
import { GIVE_UP_AFTER } from '../give-up.js';
import { FaultMissed } from './errors.js';
import type { FaultProxy } from './fault-proxy.js';

type At = 'commit' | 'before commit';

/** The connections that are to break at a COMMIT which has not come yet. */
export class Drops {
  readonly #line: FaultProxy;
  readonly #pending = new Map<AbortController, At>();

  constructor(line: FaultProxy) {
    this.#line = line;
  }

  /**
   * Resolves when the next COMMIT has been cut.
   *
   * @throws FaultMissed when the lines are closed before that, or soon if no client uses them.
   */
  next(at: At): Promise<void> {
    const missed = new AbortController();
    this.#pending.set(missed, at);
    const cut = at === 'commit' ? this.#line.cutAfterCommit(missed.signal) : this.#line.cutBeforeCommit(missed.signal);
    const unused = after(GIVE_UP_AFTER, () => {
      if (this.#line.accepted === 0) missed.abort(new FaultMissed(`${noCommit(at)} ${UNUSED}`));
    }).unref();
    const over = () => {
      stop(unused);
      this.#pending.delete(missed);
    };
    // A test that has failed before it awaits this reports its own error alone.
    cut.then(over, over);
    return cut;
  }

  /** No COMMIT will come any more. */
  close(): void {
    const why = this.#line.accepted === 0 ? UNUSED : NOT_SEEN;
    for (const [missed, at] of this.#pending) {
      missed.abort(new FaultMissed(`${noCommit(at)} The lines are closed. ${why}`));
    }
  }
}

function noCommit(at: At): string {
  return `dropConnection({ at: '${at}' }) has seen no COMMIT.`;
}

const UNUSED =
  'No client has connected to Postgres through these lines: make the client of the call with `lines.databaseUrl`, not with that of the servers.';
const NOT_SEEN =
  'The client of these lines sent none: its call was rolled back, or another client made it, or the connection is encrypted (use a server without TLS).';
