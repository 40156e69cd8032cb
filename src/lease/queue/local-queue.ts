import { after, now, type Timer } from '../../base/clock.js';
import type { SeenHolder } from '../../base/errors.js';
import type { LockVia } from '../../base/messages.js';
import { Lease } from '../lease.js';
import type { Renewal } from '../renewal.js';
import { type AcquireDependencies, AcquireLoop } from './acquire-loop.js';
import { Lingering } from './lingering.js';
import { Lookout } from './lookout.js';
import type { LeaseRequest } from './request.js';
import type { Turn } from './turn.js';
import { WaitTimeouts } from './wait-timeouts.js';
import { Waiter, type WaiterQueue } from './waiter.js';

/** When a turn has begun, so that nothing else of ours delays its first statements; ms. */
const BEGUN_BY = 2;

/** Who came to wait during a turn is not known to its holder. In one that is shorter hardly anybody has; ms. */
const SHORT_TURN = 5;

/** How many turns before the last of them it is asked whether another process waits. */
const ASKED_AHEAD = 4;

/** What all contenders of a client share. */
export interface QueueDependencies extends AcquireDependencies {
  readonly renewal: Renewal;
  /** What others are told of this process. */
  readonly name: string | undefined;
  /** How many turns pass from waiter to waiter before the other processes are asked for. */
  readonly maxLocalHandovers: number;
}

/**
 * What one process does for one key: its waiters in line, one place in the store's queue, and at most one lease, which
 * passes from waiter to waiter. It is in one of five states:
 *
 *   idle        no waiters
 *   acquiring  on its way to the lease
 *   holding     one waiter has its turn
 *   lingering   no waiters; keeps the lease for the rest of this turn of the event loop
 *   yielding    asks the store whether another process waits
 */
export class LocalQueue {
  readonly key: string;
  readonly #shared: QueueDependencies;
  /** Whether its waiters come one right after the other: the next one need not ask for what the last one gave back. */
  readonly #mayLinger: boolean;
  readonly #onIdle: (waitedFor: boolean) => void;
  readonly #waiting = new Set<Waiter>();
  readonly #patience = new WaitTimeouts(this.#waiting);
  #state: 'idle' | 'acquiring' | 'holding' | 'lingering' | 'yielding' = 'idle';
  #lease: Lease | undefined;
  #lingering: Lingering | undefined;
  /** Whether the lease is extended, so that it is as good for the next waiter as for the last. */
  #renewed = false;
  /** Whether who has its turn may hand the lease on to another process, as a handle may. */
  #mayGoElsewhere = false;
  #lookout: Lookout | undefined;
  #unheard: Timer | undefined;
  /** Whether a waiter had to wait since it was idle. */
  #waitedFor = false;
  /** Turns whose outcome is not known: one, and those that have passed the key on with their COMMIT. */
  #turns = 0;
  /** When the last turn began. */
  #beganAt = 0;
  #handovers = 0;
  readonly #acquireLoop: AcquireLoop;
  readonly #line: WaiterQueue;

  constructor(key: string, shared: QueueDependencies, mayLinger: boolean, onIdle: (waitedFor: boolean) => void) {
    this.key = key;
    this.#shared = shared;
    this.#mayLinger = mayLinger;
    this.#onIdle = onIdle;
    this.#acquireLoop = new AcquireLoop(key, shared, () => this.#first);
    this.#line = {
      key,
      trouble: () => this.#acquireLoop.trouble(),
      seen: () => this.#seen(),
      waits: (waiter) => {
        this.#waitedFor = true;
        this.#patience.add(waiter.request.deadline.remaining);
      },
      left: (waiter) => this.#left(waiter),
    };
  }

  /** Callers of this process that wait for the key. */
  get waiting(): number {
    return this.#waiting.size;
  }

  enter(request: LeaseRequest): Promise<Turn> {
    const waiter = new Waiter(request, this.#line);
    this.#waiting.add(waiter);
    this.#acquireLoop.keepPlace(request.deadline);
    if (this.#state === 'idle') void this.#acquire();
    else if (this.#state === 'lingering') this.#goOn();
    else waiter.startWaiting();
    this.#lookAfter();
    return waiter.turn;
  }

  /** Turns away who waits; whose turn it is goes on. */
  close(error: unknown): void {
    for (const waiter of this.#waiting) waiter.turnAway(error);
    this.#lingering?.now();
  }

  /** The lease was taken from this holder. */
  markLost(holder: string): void {
    if (this.#lease?.holder === holder) this.#lease.lose('gone');
  }

  #left(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    if (this.#waiting.size > 0) return;
    this.#patience.stop();
    this.#acquireLoop.stop();
    this.#lookAfter();
  }

  #seen(): SeenHolder | undefined {
    const lease = this.#lease;
    if (lease === undefined) return this.#acquireLoop.seen();
    return { process: this.#shared.name, here: true, heldFor: now() - this.#beganAt, expiresIn: lease.remaining };
  }

  get #first(): Waiter | undefined {
    for (const waiter of this.#waiting) return waiter;
    return undefined;
  }

  async #acquire(): Promise<void> {
    this.#state = 'acquiring';
    const lease = await this.#acquireLoop.acquire();
    this.#waitedFor ||= lease === undefined;
    if (lease) this.#take(lease, lease.waitedFor ? 'redis' : 'free');
    // Everybody had given up, and just now somebody came.
    else if (this.#waiting.size > 0) void this.#acquire();
    else this.#rest();
  }

  #take(lease: Lease, via: LockVia): void {
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
    if (this.#acquireLoop.listens) this.#unheard = after(BEGUN_BY, () => this.#hearNoMore());
    if (first && lease.leaseTime === first.request.leaseTime && this.#mayShare(first)) this.#call(first, lease, via);
    else this.#next(lease, via);
  }

  #call(waiter: Waiter, lease: Lease, via: LockVia): void {
    this.#waiting.delete(waiter);
    const goesOn = this.#waiting.size > 0;
    if (!goesOn) this.#patience.stop();
    if ((goesOn || this.#mayLinger) && this.#handovers === this.#shared.maxLocalHandovers - ASKED_AHEAD) {
      void this.#askAhead(lease);
    }
    this.#turns++;
    this.#mayGoElsewhere = !waiter.request.mayShare;
    this.#lookAfter();
    let [passed, left] = [false, false];
    const beganAt = now();
    this.#beganAt = beganAt;
    waiter.startTurn({
      lease,
      via,
      pass: (take) => {
        const next = this.#first;
        if (passed || left || next === undefined || !this.#suits(next, lease)) return undefined;
        const taken = take(next.request, lease);
        if (taken === undefined) return undefined;
        passed = true;
        this.#handovers++;
        this.#call(next, lease, 'commit');
        return taken;
      },
      hint: () => {
        if (!passed && !left) this.#hint(lease, beganAt);
      },
      alone: () => this.#turns === 1,
      look: () => this.#shared.renewal.look(lease),
      end: () => {
        if (left) return;
        left = true;
        this.#turns--;
        // Not before the outcome of each is known, also of one whose COMMIT is still looked for.
        if (this.#turns === 0) this.#next(lease);
      },
    });
  }

  /** One command more: not where it is known that nobody waits elsewhere, nor for a turn that is hardly longer than it. */
  #hint(lease: Lease, beganAt: number): void {
    const { maxLocalHandovers, store } = this.#shared;
    const staysHere = this.#waiting.size > 0 && this.#handovers < maxLocalHandovers;
    const isForNobody = now() - beganAt < SHORT_TURN && !lease.contended;
    if (staysHere || isForNobody || lease.shared || lease.loss) return;
    store.hint?.(lease).catch(() => {});
  }

  /** Where no other process waits the key need not be offered to one, and stays here without a pause. */
  async #askAhead(lease: Lease): Promise<void> {
    const state = await this.#shared.store.inspect(this.key).catch(() => undefined);
    lease.contended = state?.waiting !== 0;
    if (this.#lease === lease && state?.holder === lease.holder && state.waiting === 0) this.#handovers = 0;
  }

  /** The lease, when nobody works under it any more: on to the next waiter, to another process, or back. */
  #next(lease: Lease, via: LockVia = 'lease'): void {
    const next = this.#first;
    if (next && this.#suits(next, lease)) {
      this.#handovers++;
      this.#call(next, lease, via);
    } else if (next && lease.loss === undefined && this.#mayShare(next)) {
      void this.#yield(lease, next.request);
    } else if (next === undefined && this.#mayLinger && this.#isAlone(lease)) {
      this.#state = 'lingering';
      this.#lingering = new Lingering(() => this.#giveBack(lease));
    } else {
      this.#giveBack(lease);
    }
  }

  #giveBack(lease: Lease): void {
    this.#lingering = undefined;
    this.#letGo(lease);
    this.#shared.release(lease);
    if (this.#waiting.size > 0) void this.#acquire();
    else this.#rest();
  }

  /** Somebody has come for what was kept. */
  #goOn(): void {
    this.#lingering?.stop();
    this.#lingering = undefined;
    this.#state = 'holding';
    this.#next(this.#lease as Lease);
  }

  /** Whether no other process is known to wait for it, and what it has is as good for one more waiter. */
  #isAlone(lease: Lease): boolean {
    const { maxLocalHandovers } = this.#shared;
    return this.#renewed && !lease.contended && !lease.shared && this.#handovers < maxLocalHandovers && !lease.loss;
  }

  /** Whether the lease may pass to this waiter as it is. */
  #suits(waiter: Waiter, lease: Lease): boolean {
    const { leaseTime, renew } = waiter.request;
    // One that is not renewed has less left than the next waiter asks for.
    const isAsGood = this.#renewed && renew && leaseTime === lease.leaseTime && this.#mayShare(waiter);
    return isAsGood && this.#handovers < this.#shared.maxLocalHandovers && lease.loss === undefined;
  }

  /** Nobody of this process waits: what it still heard, of its own release too, would be in the way of the next one. */
  #hearNoMore(): void {
    if (this.#state === 'holding' && this.#waiting.size === 0) this.#acquireLoop.unsubscribe();
  }

  /** While somebody waits behind a lease that may go elsewhere. */
  #lookAfter(): void {
    const lease = this.#lease;
    if (lease && this.#mayGoElsewhere && this.#waiting.size > 0) {
      const { store, rest, renewal } = this.#shared;
      this.#lookout ??= new Lookout(store, this.key, rest, () => void renewal.look(lease));
    } else {
      this.#lookout?.close();
      this.#lookout = undefined;
    }
  }

  #mayShare(waiter: Waiter): boolean {
    return waiter.request.mayShare || this.#lease?.shared === false;
  }

  async #yield(lease: Lease, { leaseTime }: LeaseRequest): Promise<void> {
    this.#state = 'yielding';
    this.#letGo(lease);
    const claim = { key: lease.key, holder: lease.holder, leaseTime };
    const sentAt = now();
    try {
      if (await this.#shared.store.yield(claim)) {
        const kept = new Lease(claim, sentAt, lease.shared);
        if (kept.loss === undefined) return this.#take(kept, 'lease');
        this.#shared.release(claim);
      } else {
        this.#shared.rememberPassedOn(claim);
      }
    } catch (error) {
      this.#shared.emit({ type: 'look-failed', key: this.key, error });
      this.#shared.release(claim);
    }
    void this.#acquire();
  }

  #letGo(lease: Lease): void {
    this.#shared.renewal.remove(lease);
    this.#lease = undefined;
    this.#lookAfter();
  }

  #rest(): void {
    this.#unheard?.stop();
    this.#acquireLoop.unsubscribe();
    this.#state = 'idle';
    this.#onIdle(this.#waitedFor);
  }
}
