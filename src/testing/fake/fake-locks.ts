import { checkNames } from '../../base/check-names.js';
import { InvalidOptionError, LockTimeoutError, StaleTokenError } from '../../base/errors.js';
import type { FencedLockEvent } from '../../base/events.js';
import { findJoinable, heldKey, holds } from '../../base/held-keys.js';
import type { LockHandle } from '../../call/handle.js';
import { RunningHooks } from '../../call/hooks.js';
import { join } from '../../call/joinable.js';
import { CallHooks, joinableOf, type Lock, type Work } from '../../call/lock.js';
import type { OnceResult } from '../../call/once-per.js';
import type { LockState } from '../../call/operators.js';
import type { TryResult } from '../../call/with-lock.js';
import { memoryStore } from '../../lease/stores/memory.js';
import type { LockOptions, OnceOptions, ResolvedLockOptions } from '../../options/options.js';
import {
  checkKey,
  checkKeys,
  checkParts,
  checkState,
  checkWork,
  resolveLockOptions,
  resolveSchedule,
} from '../../options/validate-call.js';
import { resolveOptions } from '../../options/validate-options.js';
import { refuseInsideLock, refuseInsideTransaction } from '../../prisma/inside-transaction.js';
import { CallRecord, type FakeCall } from './calls.js';
import { fakeClient } from './client.js';
import { FakeHandle } from './handle.js';
import { functionOf } from './mock.js';
import { type Next, type Plan, Script } from './plan.js';
import { nextInterval, notNow, Runs } from './runs.js';
import { noClient } from './statements.js';
import { fakeTransaction } from './transaction.js';
import { type FakeTurn, Turns } from './turns.js';

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
  /** What `onEvent` would have heard: hooks that failed. */
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
  options: { readonly defaults?: LockOptions; readonly unsetKeyParts?: 'throw' | 'allow' } = {},
): FakeLocks<Client> {
  if (prisma === null || (typeof prisma !== 'object' && typeof prisma !== 'function')) {
    throw new InvalidOptionError('prisma', 'must be an object: what stands for your client in this test.');
  }
  checkNames('options', options, ['defaults', 'unsetKeyParts']);
  const { defaults, unsetKeyParts } = resolveOptions({ redis: memoryStore(), ...options });
  return new Fake(prisma, defaults, unsetKeyParts === 'throw') as unknown as FakeLocks<Client>;
}

class Fake implements Omit<FakeLocks<object>, 'prisma'> {
  readonly prisma: object;
  calls: CallRecord[] = [];
  events: FencedLockEvent[] = [];
  readonly #running = new RunningHooks();
  readonly #base: object;
  readonly #defaults: ResolvedLockOptions;
  readonly #checksParts: boolean;
  readonly #turns = new Turns();
  readonly #script = new Script();
  readonly #runs = new Runs();
  readonly #handles = new Set<FakeHandle>();
  readonly #working = new Set<Promise<unknown>>();
  /** Each turns one away who waits. */
  readonly #waiting = new Set<() => void>();
  readonly #tokens = new Map<string, { token: bigint; turns: bigint; admittedAt: Date }>();
  #token = 0n;

  constructor(base: object, defaults: ResolvedLockOptions, checksParts: boolean) {
    this.#base = base;
    this.#defaults = defaults;
    this.#checksParts = checksParts;
    this.prisma = fakeClient(base, this.#methods());
  }

  get unused(): number {
    return this.#script.left;
  }

  next(key?: string): Next {
    return this.#script.next(key === undefined ? undefined : checkKey(key));
  }

  async hold(key: Keys): Promise<{ release(): void }> {
    const wait = { waitTime: Number.POSITIVE_INFINITY, signal: undefined, onWait: () => {} };
    const turn = await this.#turns.take(checkKeys(key), wait);
    return { release: () => turn.release() };
  }

  lose(key: string): boolean {
    const holder = this.#turns.holderOf(key);
    holder?.lose('gone', key);
    return holder !== undefined;
  }

  waiting(key: string, count = 1): Promise<void> {
    return this.#turns.untilWaiting(checkKey(key), count);
  }

  reset(): void {
    this.calls = [];
    this.events = [];
    this.#script.clear();
    this.#runs.clear();
  }

  #methods(): object {
    const locks = this;
    return {
      async $withLock(key: unknown, fn: Work<object, unknown>, options: LockOptions = {}) {
        return await locks.#withLock('$withLock', key, fn, options);
      },
      async $tryWithLock(key: unknown, fn: Work<object, unknown>, options: LockOptions = {}) {
        if ('waitTime' in options) {
          throw new InvalidOptionError('waitTime', 'has no place in $tryWithLock, which does not wait.');
        }
        return await locks.#tryWithLock('$tryWithLock', key, fn, options);
      },
      async $oncePer(key: unknown, interval: unknown, fn: Work<object, unknown>, options: OnceOptions = {}) {
        return await locks.#oncePer(checkKey(key), interval, fn, options);
      },
      $lock: (key: unknown, options: LockOptions = {}) => locks.#lock('$lock', key, options),
      $resumeLock: (state: unknown, options: LockOptions = {}) => locks.#resume(state, options),
      $locks: {
        inspect: async (key: unknown) => locks.#inspect(checkKey(key)),
        list: async () => locks.#turns.keys.map((key) => locks.#inspect(key)),
        history: async (key: unknown) => {
          const { turns } = locks.#inspect(checkKey(key));
          return { key, turns, recorded: false, last: [] };
        },
        forceRelease: async (key: unknown) => {
          const checked = checkKey(key);
          refuseInsideLock('$locks.forceRelease', holds(checked) ? checked : undefined);
          return locks.lose(checked);
        },
        close: async () => {
          refuseInsideLock('$locks.close', heldKey());
          await locks.#close();
        },
      },
      $connect: async () => {
        await locks.#own('$connect');
      },
      $disconnect: async () => {
        refuseInsideLock('$disconnect', heldKey());
        await locks.#close();
        await locks.#own('$disconnect');
      },
    };
  }

  /** Calls the method of the mock, if it has one. */
  #own(method: '$connect' | '$disconnect'): unknown {
    return functionOf(this.#base, method)?.();
  }

  /** Who waits is turned away, handles are given back, and work that runs ends. */
  async #close(): Promise<void> {
    for (const turnAway of [...this.#waiting]) turnAway();
    await Promise.all([...this.#handles].map((handle) => handle.close()));
    while (this.#working.size > 0) await Promise.allSettled(this.#working);
    await this.#running.idle();
  }

  async #withLock<R>(
    method: FakeCall['method'],
    key: unknown,
    work: Work<object, R>,
    given: LockOptions,
    { begun = () => {}, committed = () => {} }: { readonly begun?: () => void; readonly committed?: () => void } = {},
  ): Promise<R> {
    const keys = this.#keysOf(key);
    checkWork(work);
    const options = this.#optionsOf(method, keys, given);
    const joinable = joinableOf({ client: this.prisma, keys, options });
    if (joinable) return await join(joinable, work, given);
    const record = this.#record(method, keys);
    const plan = this.#script.take(keys, 'both');
    const turn = await this.#turn(record, plan, method === '$withLock' ? options : { ...options, waitTime: 0 });
    begun();
    const hooks = this.#hooksOf(keys, options);
    const token = () => this.#admit(keys);
    const of = { owner: this.prisma, joins: true, client: this.#base };
    const request = { ...of, turn, plan, options, record, hooks, token };
    const transaction = async () => {
      try {
        const value = await fakeTransaction(request, work);
        committed();
        return value;
      } finally {
        turn.release();
      }
    };
    const working = transaction();
    this.#working.add(working);
    const over = () => this.#working.delete(working);
    working.then(over, over);
    return await hooks.follow(working);
  }

  async #tryWithLock<R>(
    method: '$tryWithLock' | '$oncePer',
    key: unknown,
    work: Work<object, R>,
    options: LockOptions,
    committed?: () => void,
  ): Promise<TryResult<R>> {
    let isBegun = false;
    const begun = () => {
      isBegun = true;
    };
    try {
      const value = await this.#withLock(method, key, work, options, { begun, ...(committed && { committed }) });
      return { acquired: true, value };
    } catch (error) {
      if (!isBegun && error instanceof LockTimeoutError) return { acquired: false };
      throw error;
    }
  }

  /** By the clock of this process, which fake timers may move. */
  async #oncePer<R>(key: string, interval: unknown, work: Work<object, R>, given: OnceOptions): Promise<OnceResult<R>> {
    checkWork(work);
    const { schedule, rest } = resolveSchedule(interval, given);
    const { leaseTime, nested } = this.#optionsOf('$oncePer', [key], rest);
    findJoinable([key], nested, () => false);
    const due = this.#runs.due(key, schedule);
    if (due !== undefined) return notNow(due, false);
    const begunAt = Date.now();
    const committed = () => this.#runs.mark(key, begunAt, schedule);
    const result = await this.#tryWithLock('$oncePer', key, work, { ...rest, reentry: 'throw' }, committed);
    if (result.acquired) return { ran: true, value: result.value };
    return notNow(Math.min(nextInterval(begunAt, schedule), begunAt + leaseTime), true);
  }

  async #lock(method: FakeCall['method'], key: unknown, given: LockOptions): Promise<FakeHandle> {
    const keys = this.#keysOf(key);
    const options = this.#optionsOf(method, keys, given);
    findJoinable(keys, options.nested, () => false);
    const record = this.#record(method, keys);
    const turn = await this.#turn(record, this.#script.take(keys, 'lock'), options);
    return this.#handle(turn, options, this.#admit(keys), record);
  }

  /** The handle that the state was made from is lost by that. */
  async #resume(state: unknown, given: LockOptions): Promise<FakeHandle> {
    const { keys, tokens, holders, leaseTime } = checkState(state);
    if ('leaseTime' in given) throw new InvalidOptionError('leaseTime', 'is that of the handle that is resumed.');
    const options = { ...this.#optionsOf('$resumeLock', keys, given), leaseTime };
    const token = BigInt(tokens.at(-1) as string);
    const old = [...this.#handles].find(({ turn }) => turn.holders.every((holder, at) => holder === holders[at]));
    if (old === undefined || old.turn.lost.aborted) {
      throw new StaleTokenError(keys[0] as string, token, undefined, { reason: 'superseded', ofHandle: true });
    }
    const record = this.#record('$resumeLock', keys);
    // Nobody gets the keys in between.
    const turn = this.#turns.replace(old.turn, old.superseded());
    this.#handles.delete(old);
    return this.#handle(turn, options, token, record);
  }

  #handle(turn: FakeTurn, options: ResolvedLockOptions, token: bigint, record: CallRecord): FakeHandle {
    record.begin(token);
    record.end('held');
    const handle = new FakeHandle(turn, {
      options,
      token,
      run: (of, work) => {
        const plan = this.#script.take(turn.keys, 'work');
        const own = this.#record('$transaction', turn.keys);
        const hooks = this.#hooksOf(turn.keys, of);
        const whose = { owner: this.prisma, joins: false, client: this.#base };
        const request = { ...whose, turn, plan, options: of, record: own, hooks, token: () => token };
        const transaction = fakeTransaction(request, work);
        return { transaction, result: hooks.follow(transaction) };
      },
      released: (one) => {
        this.#handles.delete(one);
        record.end('released');
      },
    });
    this.#handles.add(handle);
    return handle;
  }

  #hooksOf(keys: readonly string[], { hookErrors }: ResolvedLockOptions): CallHooks {
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    return new CallHooks({ parts: { hooks: this.#running, emit }, key: keys[0] as string, hookErrors });
  }

  /** @throws what the script says, LockTimeoutError, or the signal's reason. */
  async #turn(record: CallRecord, plan: Plan | undefined, options: ResolvedLockOptions): Promise<FakeTurn> {
    try {
      if (plan?.instead) throw plan.instead(plan.key ?? (record.keys[0] as string));
      const { waitTime, signal } = options;
      const onWait = (key: string) => void record.waitedFor.push(key);
      return await this.#turns.take(record.keys, { waitTime, signal, onWait, waiting: this.#waiting });
    } catch (error) {
      record.end('not acquired', error);
      throw error;
    }
  }

  #admit(keys: readonly string[]): bigint {
    for (const key of keys) {
      const turns = (this.#tokens.get(key)?.turns ?? 0n) + 1n;
      this.#tokens.set(key, { token: ++this.#token, turns, admittedAt: new Date() });
    }
    return this.#token;
  }

  #record(method: FakeCall['method'], keys: readonly string[]): CallRecord {
    const record = new CallRecord(method, keys);
    this.calls.push(record);
    return record;
  }

  /** @throws InvalidOptionError, InsideTransactionError */
  #optionsOf(method: FakeCall['method'], keys: readonly string[], given: LockOptions): ResolvedLockOptions {
    const options = resolveLockOptions(given, this.#defaults);
    if (options.nested === 'throw' && heldKey() === undefined) refuseInsideTransaction(method, keys[0]);
    return options;
  }

  #keysOf(key: unknown): readonly string[] {
    const keys = checkKeys(key);
    if (this.#checksParts) checkParts(keys);
    return keys;
  }

  #inspect(key: string): LockState {
    const { token, turns = 0n, admittedAt } = this.#tokens.get(key) ?? {};
    const holder = this.#turns.holderOf(key);
    const expiresIn = holder === undefined ? 0 : this.#defaults.leaseTime;
    const id = holder?.holders[holder.keys.indexOf(key)];
    const waiting = this.#turns.waiting(key);
    // All of them are of this process, which has no name here. At most 100, as of a real store.
    const waiters = Array.from({ length: Math.min(waiting, 100) }, () => undefined);
    return { key, holder: id, expiresIn, waiting, waiters, token, turns, admittedAt, transaction: undefined };
  }
}
