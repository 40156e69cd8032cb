import type { Emit } from '../../../base/events.js';
import type { ResolvedOptions } from '../../../options/options.js';
import type { MemoryStore } from '../../../stores/memory.js';
import type { Lease } from '../../../waiting/lease.js';
import { Renewal } from '../../../waiting/renewal.js';
import { WaitingRoom } from '../../../waiting/room.js';
import type { LeaseStore } from '../../../waiting/store.js';
import type { LeaseRequest, Turn, TurnUser } from '../../../waiting/turn.js';

/** What is noted of a caller that comes for a key. */
export interface Arrival {
  had(lease: Lease): void;
  failed(error: unknown): void;
}

/** Called for each caller and key. What it throws, the caller is refused with. */
export type Arrive = (key: string, resumes?: true) => Arrival;

/** The queues of a fake's calls, which see who comes. */
export class FakeRoom extends WaitingRoom {
  readonly store: LeaseStore;
  readonly renewal: Renewal;
  readonly #arrive: Arrive;

  constructor(options: ResolvedOptions, emit: Emit, arrive: Arrive) {
    const store = (options.memory as MemoryStore).connect(options.keyPrefix, options.name);
    const renewal = new Renewal(store);
    super(store, renewal, emit, options);
    this.store = store;
    this.renewal = renewal;
    this.#arrive = arrive;
  }

  override async enter<R = Turn>(key: string, request: LeaseRequest, user?: TurnUser<R>): Promise<R> {
    const arrival = this.#arrive(key);
    const turn = await super.enter(key, request).catch((error: unknown) => {
      arrival.failed(error);
      throw error;
    });
    arrival.had(turn.lease);
    return user ? await user.useTurn(turn) : (turn as R);
  }

  override async takeOver(...given: Parameters<WaitingRoom['takeOver']>): Promise<Turn> {
    const arrival = this.#arrive(given[0].key, true);
    const turn = await super.takeOver(...given);
    arrival.had(turn.lease);
    return turn;
  }

  /** No transaction is opened before its lease is had: a token would be drawn for it. */
  override isRecentlyUncontended(): boolean {
    return false;
  }
}
