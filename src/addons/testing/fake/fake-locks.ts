import { AsyncLocalStorage } from 'node:async_hooks';
import { checkNames } from '../../../base/check-names.js';
import { Deadline, inProcess, LONGEST_TIME, stop, underClock } from '../../../base/clock.js';
import { InvalidOptionError, type LossReason } from '../../../base/errors.js';
import type { FencedLockEvent } from '../../../base/events.js';
import type { LockHandle } from '../../../call/handle.js';
import type { Lock, Work } from '../../../call/lock.js';
import type { OnceResult } from '../../../call/once-per.js';
import type { LockState } from '../../../call/operators.js';
import type { TryResult } from '../../../call/with-lock.js';
import { lockClient } from '../../../client.js';
import { Fencing } from '../../../fencing/fencing.js';
import type { HandleState, LockOptions, OnceOptions, ResolvedOptions, SeenState } from '../../../options/options.js';
import { checkKey, checkKeys, checkState, OF_A_CALL, resolveLockOptions } from '../../../options/validate-call.js';
import { resolveOptions } from '../../../options/validate-options.js';
import { UNFINISHED } from '../../../prisma/tx.js';
import { type MemoryStore, memoryStore } from '../../../stores/memory.js';
import type { Lease } from '../../../waiting/lease.js';
import { withOthers } from '../../../waiting/lease-set.js';
import type { LeaseStore } from '../../../waiting/store.js';
import { GIVE_UP_AFTER } from '../give-up.js';
import { CallRecord, type FakeCall } from './calls.js';
import { fakeClient } from './client.js';
import { GlobalClock } from './clock.js';
import { FakeDatabase } from './database.js';
import { watchedHandle } from './handle.js';
import { functionOf, isObject, noClient } from './mock.js';
import { type Next, type Plan, Script } from './plan.js';
import { type Arrival, FakeRoom } from './room.js';
import { Statements } from './statements.js';

type Keys = string | readonly string[];

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
 * @param prisma what the functions under locks work on. Default: nothing, and each use is an error that says so.
 * @throws InvalidOptionError for an option that `fencedLock` would refuse.
 */
export function fakeLocks<Client extends object = AnyClient>(
  prisma: NoInfer<MockOf<Client>> = noClient(),
  options: {
    readonly defaults?: LockOptions | undefined;
    readonly unsetKeyParts?: 'throw' | 'allow' | undefined;
  } = {},
): FakeLocks<Client> {
  if (prisma === null || (typeof prisma !== 'object' && typeof prisma !== 'function')) {
    throw new InvalidOptionError('prisma', 'must be an object: what stands for your client in this test.');
  }
  checkNames('options', options, ['defaults', 'unsetKeyParts'], OF_A_CALL);
  return new Fake(prisma, resolveOptions({ redis: memoryStore(), ...options })) as unknown as FakeLocks<Client>;
}

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
  readonly #options: ResolvedOptions;
  readonly #store: LeaseStore;
  readonly #room: FakeRoom;
  /** That of another process, for what the test holds. */
  readonly #elsewhere: FakeRoom;
  /** The last lease of each key. */
  readonly #leases = new Map<string, Lease>();
  /** How many callers wait for each key. */
  readonly #waiting = new Map<string, number>();
  readonly #watchers = new Set<() => void>();
  /** Those whose function has begun. */
  readonly #begun = new WeakSet<Lock>();

  constructor(base: object, options: ResolvedOptions) {
    this.#options = options;
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    this.#database = new FakeDatabase(
      (connection, key) => new Statements(base, key, connection).open(),
      (tx) => statementsOf(tx),
    );
    const room = (arrive: (key: string) => Arrival) => {
      const store = (options.memory as MemoryStore).connect(options.keyPrefix, options.name);
      return { store, room: new FakeRoom(store, options, emit, arrive) };
    };
    const [own, other] = underClock(this.#clock, () => [
      room((key) => this.#arrive(key)),
      room(() => ({ had: (lease) => void this.#leases.set(lease.key, lease), failed: () => {} })),
    ]) as [ReturnType<typeof room>, ReturnType<typeof room>];
    this.#store = own.store;
    this.#room = own.room;
    this.#elsewhere = other.room;
    const { methods } = lockClient(options, {
      ...own,
      renewal: own.room.renewal,
      roomId: 0,
      fencing: new Fencing(options.fenceField, new Set(), new Map()),
      emit,
      database: this.#database,
      lookout: this.#database.rescue,
      calledOn: (self, method) => {
        if (isObject(self)) return { client: self, database: this.#database };
        throw new InvalidOptionError('this', `must be the client: call it as \`prisma.${method}(…)\`.`);
      },
      // A lease ends where the test says so, and not by time: nothing renews it while fake timers are moved on at once.
      resolve: (given) => ({ ...resolveLockOptions(given, options.defaults), leaseTime: LONGEST_TIME, renew: false }),
      close: () => {},
      disconnect: async () => void (await functionOf(base, '$disconnect')?.()),
    });
    this.prisma = fakeClient(base, this.#watched(methods, base));
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
      const request = { options, deadline: new Deadline(Number.POSITIVE_INFINITY), mayShare: false };
      const first = await this.#elsewhere.enter(keys[0] as string, request);
      const leases = await withOthers(first, this.#elsewhere, keys, request);
      return { release: () => underClock(this.#clock, () => leases.release()) };
    });
  }

  lose(key: string, reason: LossReason = 'gone'): boolean {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.isOver) return false;
    underClock(this.#clock, () => {
      lease.lose(reason);
      void this.#store.force(key, lease.holder);
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

  /** The methods of the locks, as calls that the test sees. */
  #watched(methods: ReturnType<typeof lockClient>['methods'], base: object): object {
    const { leaseTime } = this.#options.defaults;
    const shown = (state: LockState) => ({ ...state, expiresIn: Math.min(state.expiresIn, leaseTime) });
    const { $locks } = methods;
    const fake = this;
    /** A method whose last but one argument is the function. */
    const working = (method: '$withLock' | '$tryWithLock' | '$oncePer', at: number) =>
      function (this: object, ...given: unknown[]) {
        return fake.#call(method, given[0], (call) => {
          const own = given.with(at, fake.#work(call, given[at] as Work<object, unknown>));
          return Reflect.apply(methods[method], this, own) as Promise<unknown>;
        });
      };
    /** A method that is no call. */
    const timed = <Given extends unknown[], R>(method: (...given: Given) => Promise<R>) => {
      return (...given: Given) => underClock(this.#clock, () => method(...given));
    };
    return {
      $withLock: working('$withLock', 1),
      $tryWithLock: working('$tryWithLock', 1),
      $oncePer: working('$oncePer', 2),
      $lock(key: Keys, options?: LockOptions) {
        return fake.#call('$lock', key, async (call) => {
          const handle = await methods.$lock.call(this, key, options);
          return fake.#handle(handle, call.record as CallRecord, options?.leaseTime ?? leaseTime);
        });
      },
      $resumeLock(given: HandleState, options?: LockOptions) {
        return fake.#call('$resumeLock', given?.keys, async (call) => {
          const state = checkState(given);
          fake.#begin(call, 'lock');
          const handle = await methods.$resumeLock.call(this, { ...state, leaseTime: LONGEST_TIME }, options);
          return fake.#handle(handle, call.record as CallRecord, state.leaseTime);
        });
      },
      $locks: {
        inspect: timed((key: string) => $locks.inspect(key).then(shown)),
        list: timed(() => $locks.list().then((states) => states.map(shown))),
        history: timed($locks.history),
        forceRelease: timed(async (key: string, seen?: SeenState) => {
          const lease = this.#leases.get(key);
          const isHeld = lease?.isOver === false && (seen === undefined || seen.holder === lease.holder);
          // Its transaction is ended without a backend that could be reported, and gives the lease back.
          return (await $locks.forceRelease(key, seen)) || isHeld;
        }),
        close: timed($locks.close),
      },
      $connect: async () => void (await functionOf(base, '$connect')?.()),
      $disconnect: timed(() => methods.$disconnect()),
    };
  }

  async #call<R>(method: Call['method'], keys: unknown, action: (call: Call) => Promise<R>): Promise<R> {
    const call: Call = { method, keys, runs: 0 };
    try {
      return await current.run(call, () => underClock(this.#clock, () => action(call)));
    } catch (error) {
      call.record?.failed(error);
      throw error;
    }
  }

  /** The call is one that the test sees. @throws what the script says in place of a turn. */
  #begin(call: Call, step: 'lock' | 'both'): CallRecord {
    const record = new CallRecord(call.method, checkKeys(call.keys));
    call.record = record;
    this.calls.push(record);
    call.plan = this.#script.take(record.keys, step);
    const { instead, unsaid, key } = call.plan ?? {};
    if (unsaid) throw unsaid;
    if (instead) throw instead(key ?? (record.keys[0] as string));
    return record;
  }

  /** A caller of this process comes for a key. */
  #arrive(key: string): Arrival {
    const call = current.getStore() as Call;
    const lease = this.#leases.get(key);
    const isFree = this.#room.isFree(key) && (lease === undefined || lease.isOver);
    try {
      call.record ??= this.#begin(call, call.method === '$lock' ? 'lock' : 'both');
    } catch (error) {
      call.record?.failed(error);
      throw error;
    }
    const { record } = call;
    let waits = !isFree && call.method !== '$resumeLock';
    const count = (more: number) => this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + more);
    if (waits) {
      record.waitedFor.push(key);
      count(1);
      for (const look of [...this.#watchers]) look();
    }
    const over = () => {
      if (waits) count(-1);
      waits = false;
    };
    return {
      had: (had) => {
        over();
        this.#leases.set(key, had);
      },
      failed: (error) => {
        over();
        record.failed(error);
      },
    };
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
      const { record, plan = {} as Plan } = call;
      if (plan.unsaid) throw plan.unsaid;
      record?.begin(lock.token);
      lock.afterCommit(() => record?.end('committed'));
      lock.afterRollback((error) => record?.end('rolled back', error));
      lock.onUnknown((error) => record?.end('unknown', error));
      const statements = statementsOf(tx);
      const named = plan.key ?? lock.key;
      const lose = () => void this.lose(named, plan.lost?.reason);
      // Of the runs of one call, the first, or as many as conflict.
      if (call.runs++ < (plan.conflict?.times ?? 1)) statements.follow({ plan, lock, named, ofHandle, lose });
      const value = await fn(tx, lock);
      await statements.end();
      return value;
    };
  }

  #handle(handle: LockHandle<object>, record: CallRecord, leaseTime: number): LockHandle<object> {
    return watchedHandle(handle, {
      record,
      leaseTime,
      transaction: (fn, run) =>
        this.#call('$transaction', handle.keys, (call) => {
          call.record = new CallRecord(call.method, handle.keys);
          this.calls.push(call.record);
          return run(this.#work(call, fn));
        }),
    });
  }

  #missing(key: string, count: number): string {
    const quoted = JSON.stringify(key);
    const found = `${this.#waiting.get(key) ?? 0} of ${count} callers wait for the lock ${quoted} after ${GIVE_UP_AFTER} ms.`;
    const lease = this.#leases.get(key);
    if (lease && !lease.isOver) return `${found} Its holder has it: call the code that is to wait, without an await.`;
    return `${found} Nobody has it, so nobody waits: take it first by locks.hold(${quoted}).`;
  }
}

function statementsOf(tx: object): Statements {
  return (tx as { readonly [UNFINISHED]: Statements })[UNFINISHED];
}
