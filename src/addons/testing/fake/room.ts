import type { Emit } from '../../../base/events.js';
import type { ResolvedOptions } from '../../../options/options.js';
import type { MemoryStore } from '../../../stores/memory.js';
import { Renewal } from '../../../waiting/renewal.js';
import { WaitingRoom } from '../../../waiting/room.js';
import type { LeaseStore } from '../../../waiting/store.js';
import type { LeaseRequest, Turn, TurnUser } from '../../../waiting/turn.js';

/** Called for each caller and key. `enter` waits for its turn. What it throws, the caller is refused with. */
export type Arrive = (key: string, enter: () => Promise<Turn>, resumes?: true) => Promise<Turn>;

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
    const turn = await this.#arrive(key, () => super.enter(key, request));
    return user ? await user.useTurn(turn) : (turn as R);
  }

  override takeOver(...given: Parameters<WaitingRoom['takeOver']>): Promise<Turn> {
    return this.#arrive(given[0].key, () => super.takeOver(...given), true);
  }

  /** No transaction is opened before its lease is had: a token would be drawn for it. */
  override isRecentlyUncontended(): boolean {
    return false;
  }
}
