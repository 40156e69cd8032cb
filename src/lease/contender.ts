import { after, now, type Timer } from '../base/clock.js';
import { Caller, type Line, type Request } from './caller.js';
import { Contention, type Means } from './contention.js';
import { Lease } from './lease.js';
import { Patience } from './patience.js';
import type { Renewal } from './renewal.js';
import type { Turn } from './turn.js';

/** When a turn has begun, so that nothing else of ours delays its first statements; ms. */
const BEGUN_BY = 2;

/** What all contenders of a client share. */
export interface Shared extends Means {
  readonly renewal: Renewal;
  /** How many turns pass from caller to caller before the other processes are asked for. */
  readonly maxLocalHandovers: number;
}

/**
 * What one process does for one key: its callers in line, one place in the store's queue, and at most one lease, which
 * passes from caller to caller. It is in one of four states:
 *
 *   idle        no callers
 *   contending  on its way to the lease
 *   holding     one caller has its turn; a second one may have begun while the first one's COMMIT is under way
 *   yielding    asks the store whether another process waits
 */
export class Contender {
  readonly key: string;
  readonly #shared: Shared;
  readonly #onIdle: () => void;
  readonly #waiting = new Set<Caller>();
  readonly #patience = new Patience(this.#waiting);
  #state: 'idle' | 'contending' | 'holding' | 'yielding' = 'idle';
  #lease: Lease | undefined;
  /** Whether the lease is extended, so that it is as good for the next caller as for the last. */
  #renewed = false;
  #unheard: Timer | undefined;
  #turns = 0;
  #handovers = 0;
  readonly #contention: Contention;
  readonly #line: Line;

  constructor(key: string, shared: Shared, onIdle: () => void) {
    this.key = key;
    this.#shared = shared;
    this.#onIdle = onIdle;
    this.#contention = new Contention(key, shared, () => this.#first);
    this.#line = {
      key,
      trouble: () => this.#contention.trouble(),
      settled: (caller) => this.#patience.notice(caller.request.deadline.remaining),
      left: (caller) => this.#left(caller),
    };
  }

  /** Callers of this process that wait for the key. */
  get waiting(): number {
    return this.#waiting.size;
  }

  enter(request: Request): Promise<Turn> {
    const caller = new Caller(request, this.#line);
    this.#waiting.add(caller);
    this.#contention.keepPlace(request.deadline);
    if (this.#state === 'idle') void this.#contend();
    else caller.settle();
    return caller.turn;
  }

  /** Turns away who waits; whose turn it is goes on. */
  turnAway(error: unknown): void {
    for (const caller of this.#waiting) caller.turnAway(error);
  }

  /** The lease was taken from this holder. */
  overruled(holder: string): void {
    if (this.#lease?.holder === holder) this.#lease.lose('gone');
  }

  #left(caller: Caller): void {
    this.#waiting.delete(caller);
    if (this.#waiting.size > 0) return;
    this.#patience.stop();
    this.#contention.abandon();
  }

  get #first(): Caller | undefined {
    for (const caller of this.#waiting) return caller;
    return undefined;
  }

  async #contend(): Promise<void> {
    this.#state = 'contending';
    const lease = await this.#contention.run();
    if (lease) this.#take(lease);
    // Everybody had given up, and just now somebody came.
    else if (this.#waiting.size > 0) void this.#contend();
    else this.#rest();
  }

  #take(lease: Lease): void {
    this.#lease = lease;
    this.#handovers = 0;
    const first = this.#first;
    this.#renewed = first?.request.renew ?? false;
    this.#shared.renewal.add(lease, this.#renewed);
    lease.attach({
      lost: (error) => this.#shared.emit({ type: 'lease-lost', key: this.key, error }),
      beat: () => {},
    });
    this.#state = 'holding';
    this.#unheard?.stop();
    if (this.#contention.listens) this.#unheard = after(BEGUN_BY, () => this.#hearNoMore());
    if (first && lease.leaseTime === first.request.leaseTime && this.#mayShare(first)) this.#call(first, lease);
    else this.#next(lease);
  }

  #call(caller: Caller, lease: Lease, before?: Promise<void>): void {
    this.#waiting.delete(caller);
    if (this.#waiting.size === 0) this.#patience.stop();
    this.#turns++;
    let inOrder = before;
    before?.then(() => {
      inOrder = undefined;
    });
    let left = false;
    let tellLeft = () => {};
    caller.call({
      lease,
      early: () => {
        const next = this.#first;
        if (left || this.#turns > 1 || !next?.request.mayBeEarly || !this.#suits(next, lease)) return;
        this.#handovers++;
        const whenLeft = new Promise<void>((resolve) => {
          tellLeft = resolve;
        });
        this.#call(next, lease, whenLeft);
      },
      inOrder: () => inOrder,
      alone: () => this.#turns === 1 && !this.#shared.store.isPassedBy,
      leave: () => {
        if (left) return;
        left = true;
        tellLeft();
        this.#turns--;
        if (this.#turns === 0) this.#next(lease);
      },
    });
  }

  /** The lease, when nobody works under it any more: on to the next caller, to another process, or back. */
  #next(lease: Lease): void {
    const next = this.#first;
    if (next && this.#suits(next, lease)) {
      this.#handovers++;
      this.#call(next, lease);
    } else if (next && lease.loss === undefined && this.#mayShare(next)) {
      void this.#yield(lease, next.request);
    } else {
      this.#letGo(lease);
      this.#shared.giveBack(lease);
      if (next) void this.#contend();
      else this.#rest();
    }
  }

  /** Whether the lease may pass to this caller as it is. */
  #suits(caller: Caller, lease: Lease): boolean {
    const { leaseTime, renew } = caller.request;
    // One that is not renewed has less left than the next caller asks for.
    const isAsGood = this.#renewed && renew && leaseTime === lease.leaseTime && this.#mayShare(caller);
    return isAsGood && this.#handovers < this.#shared.maxLocalHandovers && lease.loss === undefined;
  }

  /** Nobody of this process waits: what it still heard, of its own release too, would be in the way of the next one. */
  #hearNoMore(): void {
    if (this.#state === 'holding' && this.#waiting.size === 0) this.#contention.close();
  }

  #mayShare(caller: Caller): boolean {
    return caller.request.mayShare || this.#lease?.shared === false;
  }

  async #yield(lease: Lease, { leaseTime }: Request): Promise<void> {
    this.#state = 'yielding';
    this.#letGo(lease);
    const claim = { key: lease.key, holder: lease.holder, leaseTime };
    const sentAt = now();
    try {
      if (await this.#shared.store.yield(claim)) {
        const kept = new Lease(claim, sentAt, lease.shared);
        if (kept.loss === undefined) return this.#take(kept);
        this.#shared.giveBack(claim);
      } else {
        this.#shared.passedOn(claim);
      }
    } catch (error) {
      this.#shared.emit({ type: 'look-failed', key: this.key, error });
      this.#shared.giveBack(claim);
    }
    void this.#contend();
  }

  #letGo(lease: Lease): void {
    this.#shared.renewal.remove(lease);
    this.#lease = undefined;
  }

  #rest(): void {
    this.#unheard?.stop();
    this.#contention.close();
    this.#state = 'idle';
    this.#onIdle();
  }
}
