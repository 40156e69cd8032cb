import { withCaller } from '../base/caller.js';
import {
  cutShort,
  InsideTransactionError,
  lateOperation,
  skippedOperation,
  toFencedLockError,
} from '../base/errors.js';
import type { SkippedOperation } from '../database/database.js';
import { failedBefore } from './batches.js';

/** Methods that leave the transaction or its connection. The client of a lock's transaction does not have them. */
export const NOT_ON_TX = [
  '$connect',
  '$disconnect',
  '$on',
  '$extends',
  '$transaction',
  '$withLock',
  '$tryWithLock',
  '$oncePer',
  '$lock',
  '$resumeLock',
  '$locks',
] as const;

const EXITS: ReadonlySet<unknown> = new Set(NOT_ON_TX);

/**
 * Wraps the client of a transaction: without methods that leave it (the array form of `$transaction` would do so
 * silently), and closed when the transaction ends, after which every operation rejects.
 */
export class FencedTx implements ProxyHandler<object> {
  /**
   * What the function gets. The proxy has a target of its own: after each `get`, the engine compares the value with the target's own property, and
   * Prisma's client is a proxy that computes that property again.
   */
  readonly tx: object = new Proxy({}, this);
  readonly #tx: object;
  readonly #key: string;
  readonly #unsent: Unsent;
  #isOpen = true;

  constructor(tx: object, key: string, unsent: Unsent) {
    this.#tx = tx;
    this.#key = key;
    this.#unsent = unsent;
  }

  close(): void {
    this.#isOpen = false;
    this.#unsent.close();
  }

  get(_: object, property: string | symbol, receiver: unknown): unknown {
    if (!this.#isOpen && typeof property === 'string') return refusing(this.#key, property);
    if (EXITS.has(property)) return exit(String(property));
    if (property === UNSENT) return this.#unsent.first;
    if (property === IN_FLIGHT) return this.#unsent.inFlight;
    if (property === SKIPPED) return this.#unsent.skipped;
    return this.#unsent.watched(property, Reflect.get(this.#tx, property, receiver));
  }

  has(_: object, property: string | symbol): boolean {
    return !EXITS.has(property) && Reflect.has(this.#tx, property);
  }

  set(_: object, property: string | symbol, value: unknown, receiver: unknown): boolean {
    return Reflect.set(this.#tx, property, value, receiver);
  }

  /** Assignments arrive here, too, because the receiver is this proxy. */
  defineProperty(_: object, property: string | symbol, descriptor: PropertyDescriptor): boolean {
    return Reflect.defineProperty(this.#tx, property, descriptor);
  }

  deleteProperty(_: object, property: string | symbol): boolean {
    return Reflect.deleteProperty(this.#tx, property);
  }

  ownKeys(): Array<string | symbol> {
    return Reflect.ownKeys(this.#tx).filter((property) => !EXITS.has(property));
  }

  getOwnPropertyDescriptor(_: object, property: string | symbol): PropertyDescriptor | undefined {
    const descriptor = EXITS.has(property) ? undefined : Reflect.getOwnPropertyDescriptor(this.#tx, property);
    return descriptor && { ...descriptor, configurable: true };
  }

  getPrototypeOf(): object | null {
    return Reflect.getPrototypeOf(this.#tx);
  }
}

/** A model, or an operation, that can be called and always rejects. */
function refusing(key: string, name: string): unknown {
  const refuse = (operation: string) => () => Promise.reject(lateOperation(key, operation));
  return new Proxy(refuse(name), {
    get: (_, property) => (property === 'then' ? undefined : refuse(`${name}.${String(property)}`)),
  });
}

/** `$extends` is undefined: extensions test it to find out whether they are inside a transaction. */
function exit(name: string): unknown {
  if (name === '$extends') return undefined;
  return () => {
    throw new InsideTransactionError(
      `\`${name}\` was called on the \`tx\` of a lock, and would leave its transaction. Call it outside of the function of ` +
        'the lock, on your client (`prisma`), not on `tx`.',
    );
  };
}

/** An operation of `tx` in the array of a `$transaction` is sent by that transaction, on another connection. */
function leavesTransaction(name: string): InsideTransactionError {
  return new InsideTransactionError(
    `\`${name}\` was called on the \`tx\` of a lock and given to \`$transaction([…])\`, and would leave its transaction. Await it, or ` +
      'give it to `Promise.all`: what is called on `tx` is in one transaction already.',
  );
}

/** The property that returns the first operation that was called and not sent. */
export const UNSENT = Symbol('prisma-extension-fenced-lock.unsent');
/** The property that returns the first operation that was sent and has not settled. */
export const IN_FLIGHT = Symbol('prisma-extension-fenced-lock.in-flight');
/** The property that returns the first operation that Prisma has skipped. */
export const SKIPPED = Symbol('prisma-extension-fenced-lock.skipped');

/** The methods of a client that send raw SQL. */
export const RAW: ReadonlySet<string | symbol> = new Set([
  '$executeRaw',
  '$executeRawUnsafe',
  '$queryRaw',
  '$queryRawUnsafe',
  '$queryRawTyped',
]);

/** The operations of a model that only read. */
export const READS: ReadonlySet<unknown> = new Set([
  'findUnique',
  'findUniqueOrThrow',
  'findFirst',
  'findFirstOrThrow',
  'findMany',
  'count',
  'aggregate',
  'groupBy',
]);

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Which names of a client are models and writing operations. */
export interface OperationNames {
  isModel(name: string): boolean;
  isWrite(name: string): boolean;
}

/**
 * Detects operations that were called on a transaction's client and not awaited. Prisma sends an operation only when its
 * `then` is called.
 *
 * - Not sent: a write or raw SQL whose `then`, `catch` or `finally` was not read. A relation of a fluent call makes another
 *   operation of it, which counts in its place. Reads are ignored: not sending them changes nothing.
 * - In flight: an operation of any kind whose `then` was called and whose result has not arrived. Counted here and not
 *   only at the connection, because Prisma sends later than that, and pauses between the statements of an operation.
 * - Skipped: an operation that Prisma has not sent, because another one of its batch had failed. It rejects.
 */
export class Unsent {
  readonly operations: OperationNames;
  readonly #key: string;
  readonly #waiting = new Set<Watched>();
  readonly #inFlight = new Set<Settling>();
  /** The models that were used, by their names on the client; usually a few. */
  readonly #delegates: Delegate[] = [];
  #skipped: SkippedOperation | undefined;
  #isClosed = false;

  constructor(operations: OperationNames, key: string) {
    this.operations = operations;
    this.#key = key;
  }

  get first(): string | undefined {
    return firstOf(this.#waiting);
  }

  get inFlight(): string | undefined {
    return firstOf(this.#inFlight);
  }

  get skipped(): SkippedOperation | undefined {
    return this.#skipped;
  }

  /** Called when the transaction ends. Operations that were called before are not sent any more. */
  close(): void {
    this.#isClosed = true;
  }

  /** Returns a property of the client, wrapped if it may write. */
  watched(name: string | symbol, value: unknown): unknown {
    if (typeof name !== 'string') return value;
    if (typeof value === 'function') return RAW.has(name) ? this.method(name, value as Method, true) : value;
    if (typeof value !== 'object' || value === null || !this.operations.isModel(name)) return value;
    for (const { model, proxy } of this.#delegates) if (model === name) return proxy;
    const delegate = new Delegate(name, value, this);
    this.#delegates.push(delegate);
    return delegate.proxy;
  }

  method(name: string, method: Method, mustBeSent: boolean): Method {
    const unsent = this;
    return function (...args) {
      return unsent.#watch(name, Reflect.apply(method, this, args), mustBeSent);
    };
  }

  /** Sends an operation by `then`, and counts it until it settles. */
  send(name: string, operation: PromiseLike<unknown>): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(lateOperation(this.#key, name));
    const settling: Settling = { name };
    this.#inFlight.add(settling);
    // Not an async function: the stack of an error goes on to the caller's `await` over derived promises only.
    return operation.then(
      (value) => {
        this.#inFlight.delete(settling);
        return value;
      },
      (error: unknown) => {
        this.#inFlight.delete(settling);
        const failed = failedBefore(error);
        if (failed !== undefined) {
          const skipped = { name, failed };
          this.#skipped ??= skipped;
          throw skippedOperation(this.#key, skipped);
        }
        // The transaction ended before Prisma had passed on all of the operation, and Prisma knows no reason.
        // Or our gate has refused a statement of it, whose error does not name the operation.
        const { code } = (error ?? {}) as { readonly code?: unknown };
        // Made below Prisma, where the stack does not lead to the operation.
        withCaller(toFencedLockError(error));
        throw this.#isClosed && OF_ENDED.has(code) ? cutShort(this.#key, name, error) : error;
      },
    ) as Promise<unknown>;
  }

  /** An extension may replace an operation by its own method, which returns an ordinary promise. */
  #watch(name: string, operation: unknown, mustBeSent: boolean): unknown {
    if (operation instanceof Promise || typeof (operation as Partial<Lazy> | null)?.requestTransaction !== 'function') {
      return operation;
    }
    const handler = new Watched(name, this, mustBeSent ? this.#waiting : undefined);
    if (mustBeSent) this.#waiting.add(handler);
    return new Proxy(operation as object, handler);
  }
}

function firstOf(operations: ReadonlySet<Settling>): string | undefined {
  for (const { name } of operations) return name;
  return undefined;
}

/** Codes that an operation rejects with behind the end of its transaction: Prisma's, our gate's, and that of a late extension. */
const OF_ENDED: ReadonlySet<unknown> = new Set(['P2028', 'CLOSED', 'INSIDE_TRANSACTION']);

/** An operation that was sent and has not settled. */
interface Settling {
  readonly name: string;
}

/** A method that only Prisma's lazy promises have. */
interface Lazy {
  requestTransaction(): unknown;
}

/** A model of the client. Its proxy has a target of its own, as in `FencedTx`. */
class Delegate implements ProxyHandler<object> {
  readonly model: string;
  readonly proxy: object = new Proxy({}, this);
  readonly #delegate: object;
  readonly #unsent: Unsent;

  constructor(model: string, delegate: object, unsent: Unsent) {
    this.model = model;
    this.#delegate = delegate;
    this.#unsent = unsent;
  }

  get(_: object, name: string | symbol): unknown {
    const value: unknown = Reflect.get(this.#delegate, name);
    if (typeof name !== 'string' || typeof value !== 'function') return value;
    const writes = this.#unsent.operations.isWrite(name);
    if (!writes && !READS.has(name)) return value;
    return this.#unsent.method(`${this.model}.${name}`, value as Method, writes);
  }

  has(_: object, name: string | symbol): boolean {
    return Reflect.has(this.#delegate, name);
  }

  set(_: object, name: string | symbol, value: unknown): boolean {
    return Reflect.set(this.#delegate, name, value);
  }

  ownKeys(): Array<string | symbol> {
    return Reflect.ownKeys(this.#delegate);
  }

  getOwnPropertyDescriptor(_: object, name: string | symbol): PropertyDescriptor | undefined {
    const descriptor = Reflect.getOwnPropertyDescriptor(this.#delegate, name);
    return descriptor && { ...descriptor, configurable: true };
  }

  getPrototypeOf(): object | null {
    return Reflect.getPrototypeOf(this.#delegate);
  }
}

/** One operation that was called. */
class Watched implements ProxyHandler<object> {
  readonly name: string;
  readonly #unsent: Unsent;
  /** Where it is until it is used. */
  readonly #waiting: Set<Watched> | undefined;

  constructor(name: string, unsent: Unsent, waiting: Set<Watched> | undefined) {
    this.name = name;
    this.#unsent = unsent;
    this.#waiting = waiting;
  }

  get(operation: object, property: string | symbol): unknown {
    if (typeof property !== 'string') return Reflect.get(operation, property);
    if (property === 'requestTransaction') return () => Promise.reject(leavesTransaction(this.name));
    if (property !== 'then' && property !== 'catch' && property !== 'finally') {
      const value: unknown = Reflect.get(operation, property);
      if (typeof value !== 'function') return value;
      const relation = this.#unsent.method(`${this.name}.${property}`, value as Method, this.#waiting !== undefined);
      return (...given: unknown[]) => {
        this.#waiting?.delete(this);
        return Reflect.apply(relation, operation, given);
      };
    }
    this.#waiting?.delete(this);
    return (...given: unknown[]) => {
      const sent = this.#unsent.send(this.name, operation as PromiseLike<unknown>);
      return Reflect.apply(sent[property], sent, given);
    };
  }
}
