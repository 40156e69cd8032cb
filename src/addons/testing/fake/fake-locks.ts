import { checkNames } from '../../../base/check-names.js';
import { InvalidOptionError } from '../../../base/errors.js';
import type { FencedLockEvent } from '../../../base/events.js';
import type { LockHandle } from '../../../call/handle.js';
import type { Lock } from '../../../call/lock.js';
import type { OnceResult } from '../../../call/once-per.js';
import type { TryResult } from '../../../call/with-lock.js';
import type { LockOptions, OnceOptions } from '../../../options/options.js';
import { checkKey, checkKeys, OF_A_CALL } from '../../../options/validate-call.js';
import { resolveOptions } from '../../../options/validate-options.js';
import { memoryStore } from '../../../stores/memory.js';
import type { FakeCall } from './calls.js';
import { fakeClient } from './client.js';
import { methodsOf } from './methods.js';
import { FakeParts } from './parts.js';
import type { Next } from './plan.js';
import { noClient } from './statements.js';

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

class Fake implements Omit<FakeLocks<object>, 'prisma'> {
  readonly prisma: object;
  readonly #parts: FakeParts;

  constructor(base: object, options: Parameters<typeof methodsOf>[1]) {
    this.#parts = new FakeParts(base);
    this.prisma = fakeClient(base, methodsOf(this.#parts, options));
  }

  get calls(): readonly FakeCall[] {
    return this.#parts.calls;
  }

  get events(): readonly FencedLockEvent[] {
    return this.#parts.events;
  }

  get unused(): number {
    return this.#parts.script.left;
  }

  next(key?: string): Next {
    return this.#parts.script.next(key === undefined ? undefined : checkKey(key));
  }

  async hold(key: Keys): Promise<{ release(): void }> {
    const wait = { waitTime: Number.POSITIVE_INFINITY, signal: undefined, elsewhere: true };
    const turn = await this.#parts.turns.take(checkKeys(key), wait);
    return { release: () => turn.release() };
  }

  lose(key: string): boolean {
    const holder = this.#parts.turns.holderOf(key);
    holder?.lose('gone', key);
    return holder !== undefined;
  }

  async waiting(key: string, count = 1): Promise<void> {
    await this.#parts.turns.untilWaiting(checkKey(key), count);
  }

  reset(): void {
    const { script, runs } = this.#parts;
    this.#parts.calls = [];
    this.#parts.events = [];
    script.clear();
    runs.clear();
  }
}
