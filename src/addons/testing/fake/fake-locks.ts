import { AsyncLocalStorage } from 'node:async_hooks';
import { checkNames } from '../../../base/checks.js';
import { Deadline, inProcess, LONGEST_TIME, stop, underClock } from '../../../base/clock.js';
import { ClosedError, InvalidOptionError, type LossReason } from '../../../base/errors.js';
import type { FencedLockEvent } from '../../../base/events.js';
import type { LockMessage } from '../../../base/messages.js';
import { permitOf } from '../../../base/permits.js';
import type { LockHandle, PermitHandle } from '../../../call/handle.js';
import type { Lock, Permit, Work } from '../../../call/lock.js';
import type { OnceResult } from '../../../call/once-per.js';
import type { TryResult } from '../../../call/with-lock.js';
import { lockClient } from '../../../client.js';
import { Fencing } from '../../../fencing/fencing.js';
import { checkKey, checkKeys } from '../../../options/arguments.js';
import type {
  HandleState,
  LockOptions,
  OnceOptions,
  PermitOptions,
  ResolvedOptions,
  SeenState,
  TransactionOptions,
} from '../../../options/options.js';
import { BELONGS_TO_A_CALL, resolveLockOptions, resolveOptions } from '../../../options/resolve.js';
import { memoryStore } from '../../../stores/memory.js';
import type { Lease } from '../../../waiting/lease.js';
import { type Turn, withOthers } from '../../../waiting/turn.js';
import { fakeClient } from './client.js';
import { GlobalClock } from './clock.js';
import { FakeDatabase } from './database.js';
import { functionOf } from './mock.js';
import { type Next, type Plan, Script } from './plan.js';
import { type Arrive, FakeRoom } from './room.js';

type Keys = string | readonly string[];

/** What became of a call so far. `held`, `released` and `lost`: of a handle. */
export type FakeOutcome =
  | 'waiting'
  | 'working'
  | 'held'
  | 'released'
  | 'lost'
  | 'committed'
  | 'rolled back'
  | 'unknown'
  | 'not acquired';

/** One call, as a test looks at it. */
export interface FakeCall {
  readonly method: Exclude<LockMessage['operation'], 'handle.$transaction'> | '$transaction';
  /** In the order in which they are taken. */
  readonly keys: readonly string[];
  /** Those that somebody else had when the call came to them. */
  readonly waitedFor: readonly string[];
  /** Rises from turn to turn; `undefined` before its turn. */
  readonly token: bigint | undefined;
  readonly outcome: FakeOutcome;
  /** Why it was rolled back or is unknown, or why the lock was not had, or was lost. */
  readonly error: unknown;
}

/** Vitest and Jest end a test after 5 s and cannot say what it was waiting for: `waiting` gives up before that. */
const GIVE_UP_AFTER = 4_000;

/** What a test makes of a model. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the test works on
type Anything = any;

/** The client of a fake that was given no type. */
export interface AnyClient {
  $withLock<R>(
    key: Keys,
    fn: (tx: Record<string, Anything>, lock: Lock) => R | Promise<R>,
    options?: LockOptions,
  ): Promise<R>;
  $tryWithLock<R>(
    key: Keys,
    fn: (tx: Record<string, Anything>, lock: Lock) => R | Promise<R>,
    options?: Omit<LockOptions, 'waitTime'>,
  ): Promise<TryResult<R>>;
  $oncePer<R>(
    key: string,
    interval: number,
    fn: (tx: Record<string, Anything>, lock: Lock) => R | Promise<R>,
    options?: OnceOptions,
  ): Promise<OnceResult<R>>;
  $lock(key: Keys, options?: LockOptions): Promise<LockHandle<Record<string, Anything>>>;
  $withPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: Record<string, Anything>, lock: Permit) => R | Promise<R>,
    options?: LockOptions,
  ): Promise<R>;
  $tryWithPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: Record<string, Anything>, lock: Permit) => R | Promise<R>,
    options?: Omit<LockOptions, 'waitTime'>,
  ): Promise<TryResult<R>>;
  $permit(key: string, of: PermitOptions, options?: LockOptions): Promise<PermitHandle<Record<string, Anything>>>;
  readonly [name: string]: Anything;
}

/** What a test may give in place of a client: some of its models and methods, in any form. */
type MockOf<Client> = string extends keyof Client
  ? object
  : { readonly [Name in keyof Client | '$on' | '$extends']?: unknown };

/** Locks of one test, without a server. */
export interface FakeLocks<Client> {
  /** What the code under test is given. */
  readonly prisma: Client;
  /** All calls, in the order in which they came. */
  readonly calls: readonly FakeCall[];
  /** What `onEvent` would have heard, such as hooks that failed. */
  readonly events: readonly FencedLockEvent[];
  /** Says what becomes of the next call, or of the next one of this key. */
  next(key?: string): Next;
  /** Takes a key as another process would; resolves when it has it. Give it back by `release()`. */
  hold(key: Keys): Promise<{ release(): void }>;
  /** Whoever has the key loses its lease now, as if Redis had been flushed. `false` if nobody has it. */
  lose(key: string): boolean;
  /** Resolves when so many callers wait for the key. Default: one. Rejects after 4 s, also under fake timers. */
  waiting(key: string, count?: number): Promise<void>;
  /** How many entries of the script no call has taken. */
  readonly unused: number;
  /**
   * Forgets the calls, the script and the runs of `$oncePer`, for the next test. What is held stays. What your mocks have
   * recorded stays too: clear that by the test runner.
   */
  reset(): void;
}

/**
 * A client with locks that need no server, for unit tests: serial per key in this process, with rising tokens and the real
 * errors. Nothing is rolled back, because `prisma` is the test's own: a few functions, or a mock of your client. Operations of
 * Prisma on `tx` call it when they are awaited. Those that are not awaited, and writes on the client in place of `tx`, are
 * refused as by the real locks.
 *
 * Waits by the timers that are in force when a call is made, so a test runner's fake timers end them.
 *
 * @param prisma what the functions under locks work on. Default: nothing.
 * @throws InvalidOptionError for an option that `fencedLock` would refuse.
 */
export function fakeLocks<Client extends object = AnyClient>(
  prisma: NoInfer<MockOf<Client>> = {} as NoInfer<MockOf<Client>>,
  options: {
    readonly defaults?: LockOptions | undefined;
    readonly unsetKeyParts?: 'throw' | 'allow' | undefined;
  } = {},
): FakeLocks<Client> {
  if (prisma === null || (typeof prisma !== 'object' && typeof prisma !== 'function')) {
    throw new InvalidOptionError('prisma', 'must be an object: what stands for your client in this test.');
  }
  checkNames('options', options, ['defaults', 'unsetKeyParts'], BELONGS_TO_A_CALL);
  return new Fake(prisma, resolveOptions({ redis: memoryStore(), ...options })) as unknown as FakeLocks<Client>;
}

/** A call that the test sees, while it is under way. */
type CallRecord = { -readonly [Name in keyof FakeCall]: FakeCall[Name] } & { readonly waitedFor: string[] };

/** A call that is under way. */
interface Call {
  readonly method: FakeCall['method'];
  /** As it was given. */
  readonly keys: unknown;
  /** Made when it comes for its first key: what was refused before, or has joined another call, is no call of its own. */
  record?: CallRecord;
  plan?: Plan | undefined;
  runs: number;
}

/** The call whose async context this is. */
const current = new AsyncLocalStorage<Call>();

/** The real locks over a database and leases in memory, and what a test sees and says of them. */
class Fake implements Omit<FakeLocks<object>, 'prisma'> {
  readonly prisma: object;
  calls: CallRecord[] = [];
  events: FencedLockEvent[] = [];
  readonly #clock = new GlobalClock();
  readonly #script = new Script();
  readonly #database: FakeDatabase;
  readonly #room: FakeRoom;
  /** That of another process, for what the test holds. */
  readonly #elsewhere: FakeRoom;
  /** The last lease of each key. */
  readonly #leases = new Map<string, Lease>();
  /** How many callers have come for any one of some permits, and have not got it. */
  readonly #coming = new Map<string, number>();
  /** How many callers wait for each key. */
  readonly #waiting = new Map<string, number>();
  readonly #watchers = new Set<() => void>();
  /** Those whose function has begun. */
  readonly #begun = new WeakSet<Lock>();

  constructor(mock: object, options: ResolvedOptions) {
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    this.#database = new FakeDatabase(mock);
    const room = (arrive: Arrive) => underClock(this.#clock, () => new FakeRoom(options, emit, arrive));
    this.#room = room((...given) => this.#arrive(...given));
    this.#elsewhere = room(async (key, enter) => {
      const turn = await enter();
      this.#leases.set(key, turn.lease);
      return turn;
    });
    const { methods } = lockClient(options, {
      store: this.#room.store,
      room: this.#room,
      renewal: this.#room.renewal,
      roomId: 0,
      fencing: new Fencing(options.fenceField, new Set(), new Map()),
      emit,
      database: this.#database,
      lookout: this.#database.rescue,
      calledOn: (self) => ({ client: self as object, database: this.#database }),
      // A lease ends where the test says so, and not by time: nothing renews it while fake timers are moved on at once.
      resolve: (given) => ({ ...resolveLockOptions(given, options.defaults), leaseTime: LONGEST_TIME, renew: false }),
      close: () => {},
      disconnect: async () => void (await functionOf(mock, '$disconnect')?.()),
    });
    this.prisma = fakeClient(mock, this.#watched(methods, mock));
  }

  get unused(): number {
    return this.#script.left;
  }

  next(key?: string): Next {
    return this.#script.next(key === undefined ? undefined : checkKey(key));
  }

  hold(key: Keys): Promise<{ release(): void }> {
    return underClock(this.#clock, async () => {
      const keys = checkKeys(key);
      const options = { leaseTime: LONGEST_TIME, renew: false, waitTime: LONGEST_TIME, signal: undefined };
      const request = { options, deadline: new Deadline(Number.POSITIVE_INFINITY), preopen: undefined };
      const first = await this.#elsewhere.enter(keys[0] as string, request);
      const turn = await withOthers(first, this.#elsewhere, keys, request);
      return { release: () => underClock(this.#clock, () => turn.end()) };
    });
  }

  lose(key: string, reason: LossReason = 'gone'): boolean {
    const lease = this.#leaseOf(key);
    if (lease === undefined) return false;
    underClock(this.#clock, () => {
      lease.lose(reason);
      void this.#room.store.force(key, lease.holder);
    });
    return true;
  }

  async waiting(key: string, count = 1): Promise<void> {
    checkKey(key);
    await new Promise<void>((resolve, reject) => {
      const late = inProcess(GIVE_UP_AFTER, () => {
        this.#watchers.delete(look);
        reject(new Error(this.#missing(key, count)));
      });
      const look = () => {
        if ((this.#waiting.get(key) ?? 0) < count) return;
        stop(late);
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  reset(): void {
    this.calls = [];
    this.events = [];
    this.#script.clear();
    this.#database.runs.clear();
  }

  /** The lease of a key that somebody has. */
  #leaseOf(key: string): Lease | undefined {
    return this.#leasesOf(key)[0];
  }

  #leasesOf(key: string): Lease[] {
    return [...this.#leases.values()].filter((lease) => !lease.isOver && [lease.key, knownBy(lease.key)].includes(key));
  }

  /** Whether somebody else has what a caller comes for. */
  #isTaken(key: string): boolean {
    const permit = permitOf(key);
    if (permit !== undefined) return this.#leasesOf(permit.key).length + (this.#coming.get(key) ?? 0) >= permit.most;
    return !this.#room.isFree(key) || this.#leaseOf(key) !== undefined;
  }

  /** The methods of the locks, as calls that the test sees. */
  #watched(methods: ReturnType<typeof lockClient>['methods'], mock: object): Record<string, unknown> {
    const fake = this;
    /** `fnAt`: which argument is the function; without it, the method makes a handle. */
    const call = (method: Exclude<FakeCall['method'], '$transaction'>, fnAt?: number) =>
      function (this: object, ...given: unknown[]): Promise<unknown> {
        const keys = method === '$resumeLock' ? (given[0] as Partial<HandleState> | undefined)?.keys : given[0];
        return fake.#call(method, keys, async (call) => {
          const run = methods[method] as (...given: unknown[]) => Promise<unknown>;
          if (fnAt === undefined) return fake.#handle(await run.apply(this, given), call.record as CallRecord);
          return await run.apply(this, given.with(fnAt, fake.#work(call, given[fnAt] as Work<object, unknown>)));
        });
      };
    const timed = <Given extends unknown[], R>(method: (...given: Given) => Promise<R>) => {
      return (...given: Given) => underClock(this.#clock, () => method(...given));
    };
    const { forceRelease, ...others } = methods.$locks;
    const operators: [string, (...given: never[]) => Promise<unknown>][] = Object.entries(others);
    return {
      $withLock: call('$withLock', 1),
      $tryWithLock: call('$tryWithLock', 1),
      $oncePer: call('$oncePer', 2),
      $lock: call('$lock'),
      $withPermit: call('$withPermit', 2),
      $tryWithPermit: call('$tryWithPermit', 2),
      $permit: call('$permit'),
      $resumeLock: call('$resumeLock'),
      $locks: {
        ...Object.fromEntries(operators.map(([name, method]) => [name, timed(method)])),
        forceRelease: timed(async (key: string, seen?: SeenState) => {
          const lease = this.#leaseOf(key);
          const isHeld = lease !== undefined && (seen === undefined || seen.holder === lease.holder);
          // Its transaction is ended without a backend that could be reported, and gives the lease back.
          return (await forceRelease(key, seen)) || isHeld;
        }),
      },
      $connect: async () => void (await functionOf(mock, '$connect')?.()),
      $disconnect: timed(methods.$disconnect),
    };
  }

  async #call<R>(method: Call['method'], keys: unknown, action: (call: Call) => Promise<R>): Promise<R> {
    const call: Call = { method, keys, runs: 0 };
    try {
      return await current.run(call, () => underClock(this.#clock, () => action(call)));
    } catch (error) {
      failed(call.record, error);
      throw error;
    }
  }

  #record({ method }: Call, keys: readonly string[]): CallRecord {
    const record: CallRecord = { method, keys, waitedFor: [], token: undefined, outcome: 'waiting', error: undefined };
    this.calls.push(record);
    return record;
  }

  /** A caller of this process comes for a key. @throws what the script says in place of a turn. */
  async #arrive(key: string, enter: () => Promise<Turn>, resumes = false): Promise<Turn> {
    const call = current.getStore() as Call;
    const waits = !resumes && this.#isTaken(key);
    const known = knownBy(key);
    if (call.record === undefined) {
      call.record = this.#record(call, checkKeys(call.keys));
      const isHandle = call.method === '$lock' || call.method === '$permit' || resumes;
      call.plan = this.#script.take(call.record.keys, isHandle ? 'lock' : 'both');
      const error = call.plan?.instead?.(call.plan.key ?? (call.record.keys[0] as string));
      if (call.plan?.instead) {
        failed(call.record, error);
        throw error;
      }
    }
    const count = (more: number) => this.#waiting.set(known, (this.#waiting.get(known) ?? 0) + more);
    if (waits) {
      call.record.waitedFor.push(known);
      count(1);
      for (const look of [...this.#watchers]) look();
    }
    this.#coming.set(key, (this.#coming.get(key) ?? 0) + 1);
    try {
      const turn = await enter();
      this.#leases.set(turn.key, turn.lease);
      return turn;
    } catch (error) {
      failed(call.record, error);
      throw error;
    } finally {
      this.#coming.set(key, (this.#coming.get(key) ?? 0) - 1);
      if (waits) count(-1);
    }
  }

  /** The function of a call, as the script wants it. */
  #work<R>(call: Call, fn: Work<object, R>): Work<object, R> {
    if (typeof fn !== 'function') return fn;
    return async (tx, lock) => {
      // A call that has joined another one.
      if (this.#begun.has(lock)) return await fn(tx, lock);
      this.#begun.add(lock);
      const ofHandle = call.method === '$transaction';
      if (ofHandle && call.runs === 0) call.plan = this.#script.take(lock.keys, 'work');
      const record = call.record as CallRecord;
      Object.assign(record, { token: lock.token, outcome: 'working' });
      lock.afterCommit(() => end(record, 'committed'));
      lock.afterRollback((error) => end(record, 'rolled back', error));
      lock.onUnknown((error) => end(record, 'unknown', error));
      const { plan = { key: undefined } } = call;
      const named = plan.key ?? lock.key;
      const lose = () => void this.lose(named, plan.lost?.reason);
      const transaction = this.#database.transactionOf(tx);
      // Of the runs of one call, the first, or as many as conflict.
      if (call.runs++ < (plan.fails?.times ?? 1)) transaction?.follow({ plan, lock, named, ofHandle, lose });
      const value = await fn(tx, lock);
      await transaction?.end();
      return value;
    };
  }

  /** A handle whose transactions are calls that the test sees, too. */
  #handle(given: unknown, record: CallRecord): LockHandle<object> {
    const handle = given as LockHandle<object>;
    const { signal, token } = handle;
    const { $transaction, release } = handle;
    Object.assign(record, { token, outcome: 'held' });
    const released = () => {
      if (record.outcome === 'held') end(record, 'released');
    };
    const aborted = () => (signal.reason instanceof ClosedError ? released() : end(record, 'lost', signal.reason));
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted);
    return Object.assign(handle, {
      $transaction: async <R>(fn: Work<object, R>, options?: TransactionOptions): Promise<R> => {
        // What is refused is no call.
        if (record.outcome !== 'held' || typeof fn !== 'function')
          return (await $transaction.call(handle, fn, options)) as R;
        return await this.#call('$transaction', handle.keys, async (call) => {
          call.record = this.#record(call, handle.keys);
          return (await $transaction.call(handle, this.#work(call, fn), options)) as R;
        });
      },
      release: async () => {
        await release.call(handle);
        released();
      },
    });
  }

  #missing(key: string, count: number): string {
    const quoted = JSON.stringify(key);
    const found = `${this.#waiting.get(key) ?? 0} of ${count} callers wait for the lock ${quoted} after ${GIVE_UP_AFTER} ms.`;
    if (this.#leaseOf(key)) return `${found} Its holder has it: call the code that is to wait, without an await.`;
    return `${found} Nobody has it, so nobody waits: take it first by locks.hold(${quoted}).`;
  }
}

/** The key of a permit, and any other key itself. */
function knownBy(key: string): string {
  return permitOf(key)?.key ?? key;
}

function end(record: CallRecord, outcome: FakeOutcome, error?: unknown): void {
  Object.assign(record, { outcome, error });
}

/** It has failed. That is said here where its function has not begun; its outcome says the rest. */
function failed(record: CallRecord | undefined, error: unknown): void {
  if (record?.outcome === 'waiting') end(record, 'not acquired', error);
}
