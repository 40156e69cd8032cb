import { Reply } from '../base/reply.js';
import { runInside } from '../base/scope.js';
import type { Place } from '../database/database.js';
import { Ticket, type WaitLimit } from './pool.js';

/** Runs `body` in a transaction of the database client, and commits or rolls back by how it ends. */
export type Begin<Tx> = (body: (tx: Tx) => Promise<void>) => Promise<void>;

/** A transaction that the database client itself opens, on the fenced connection that its ticket entitles it to. */
export class OwnTransaction<Tx> {
  readonly ticket: Ticket;
  readonly #decided = new Reply<(tx: Tx) => Promise<void>>();
  readonly #settled: Promise<void>;

  constructor(place: Place, evenIfWanted: boolean, begin: Begin<Tx>, limit?: WaitLimit) {
    this.ticket = new Ticket(place, evenIfWanted, limit);
    this.#settled = runInside({ ticket: this.ticket }, () =>
      begin((tx) => this.#decided.value?.(tx) ?? this.#decided.promise.then((body) => body(tx))),
    );
  }

  /** @param body gets where the connection came from; `undefined`: not from a fenced pool or adapter. */
  run(body: (tx: Tx, source: object | undefined) => Promise<void>): Promise<void> {
    let ended: Promise<void> | undefined;
    // An extension may repeat the transaction, on a connection that is not fenced. A repetition ends as the first run did.
    this.#decided.resolve((tx) => {
      this.ticket.isOpen = false;
      ended ??= body(tx, this.ticket.source);
      return ended;
    });
    return this.#settled;
  }

  discard(): Promise<void> {
    this.#decided.resolve(() => Promise.reject(new Error('not needed')));
    return this.#settled;
  }
}
