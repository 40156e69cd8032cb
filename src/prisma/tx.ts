import { withCaller } from '../base/caller.js';
import {
  codeOf,
  cutShort,
  type FencedLockError,
  InsideTransactionError,
  lateOperation,
  skippedOperation,
  TransactionAbortedError,
  toFencedLockError,
} from '../base/errors.js';
import { Facade } from '../base/facade.js';
import type { SkippedOperation, Unfinished } from '../database/database.js';
import { WRITE_NAMES } from '../fencing/writes.js';

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
  '$withPermit',
  '$tryWithPermit',
  '$permit',
  '$resumeLock',
  '$locks',
] as const;

const EXITS: ReadonlySet<unknown> = new Set(NOT_ON_TX);

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

/** The property that returns what the function has left unfinished. */
export const UNFINISHED = Symbol('prisma-extension-fenced-lock.unfinished');

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

/**
 * Wraps the client of a transaction: without methods that leave it (the array form of `$transaction` would do so silently).
 * When the transaction has ended, every operation rejects.
 *
 * It detects operations that were called on the client and not awaited. Prisma sends an operation only when its `then` is
 * called.
 *
 * - Not sent: a write or raw SQL whose `then`, `catch` or `finally` was not read. A relation of a fluent call makes another
 *   operation of it, which counts in its place. Reads are ignored: not sending them changes nothing.
 * - In flight: an operation of any kind whose `then` was called and whose result has not arrived. Counted here and not
 *   only at the connection, because Prisma sends later than that, and pauses between the statements of an operation.
 * - Refused: an operation that was used, and was skipped by Prisma behind one that failed, or refused here. It rejects.
 */
export class FencedTx extends Facade implements Unfinished {
  readonly #key: string;
  readonly #modelNames: { has(name: string): boolean };
  readonly #waiting = new Set<Operation>();
  readonly #inFlight = new Set<{ readonly name: string }>();
  /** The models that were used, by their names on the client. */
  readonly #models = new Map<string, object>();
  refused: FencedLockError | undefined;
  /** Set when the transaction ends. Operations that were called before are not sent any more. */
  isClosed = false;

  /** @param models their names on the client. */
  constructor(tx: object, key: string, models: { has(name: string): boolean }) {
    super(tx);
    this.#key = key;
    this.#modelNames = models;
  }

  get(_: object, property: string | symbol, receiver: unknown): unknown {
    if (property === UNFINISHED) return this;
    if (EXITS.has(property)) return exit(String(property));
    const value: unknown = Reflect.get(this.inner, property, receiver);
    if (typeof property !== 'string') return value;
    if (typeof value === 'function') return RAW.has(property) ? this.method(property, value as Method, true) : value;
    if (typeof value !== 'object' || value === null || !this.#modelNames.has(property)) return value;
    const model = this.#models.get(property) ?? new Model(property, value, this).proxy;
    this.#models.set(property, model);
    return model;
  }

  override has(target: object, property: string | symbol): boolean {
    return !EXITS.has(property) && super.has(target, property);
  }

  get unsent(): string | undefined {
    return this.#waiting.values().next().value?.name;
  }

  get inFlight(): string | undefined {
    return this.#inFlight.values().next().value?.name;
  }

  /** A method that makes an operation. @param name in messages. */
  method(name: string, method: Method, mustBeSent: boolean): Method {
    const tx = this;
    return function (...args) {
      // Called by a function of the proxy: Prisma's messages show the first line on the stack that is none of a proxy.
      return tx.watch(name, Reflect.apply(method, this, args), mustBeSent);
    };
  }

  watch(name: string, operation: unknown, mustBeSent: boolean): unknown {
    // An extension may replace an operation by its own method, which returns an ordinary promise.
    if (!isLazy(operation)) return operation;
    const watched = new Operation(name, operation, this, mustBeSent ? this.#waiting : undefined);
    if (mustBeSent) this.#waiting.add(watched);
    return watched.proxy;
  }

  /** Sends an operation by `then`, and counts it until it settles. */
  send(name: string, operation: PromiseLike<unknown>): Promise<unknown> {
    if (this.isClosed) return Promise.reject(lateOperation(this.#key, name));
    const sent = { name };
    this.#inFlight.add(sent);
    // Not an async function: the stack of an error goes on to the caller's `await` over derived promises only.
    return operation.then(
      (value) => {
        this.#inFlight.delete(sent);
        return value;
      },
      (error: unknown) => {
        this.#inFlight.delete(sent);
        throw this.#named(name, error);
      },
    ) as Promise<unknown>;
  }

  /** Notes an operation that Prisma has not sent, and returns its error. */
  skip(skipped: SkippedOperation): FencedLockError {
    const error = skippedOperation(this.#key, skipped);
    this.refused ??= error;
    return error;
  }

  #named(name: string, error: unknown): unknown {
    const ours = toFencedLockError(error);
    if (ours instanceof InsideTransactionError) this.refused ??= ours;
    // Made below Prisma, where the stack does not lead to the operation.
    withCaller(ours);
    if (ours instanceof TransactionAbortedError && ours.reason === 'skipped-operation') return ours;
    // The transaction ended before Prisma had passed on all of the operation, and Prisma knows no reason.
    // Or our gate has refused a statement of it, whose error does not name the operation.
    return this.isClosed && OF_ENDED.has(codeOf(error)) ? cutShort(this.#key, name, error) : error;
  }
}

/** Codes that an operation rejects with behind the end of its transaction: Prisma's, our gate's, and that of a late extension. */
const OF_ENDED: ReadonlySet<unknown> = new Set(['P2028', 'CLOSED', 'INSIDE_TRANSACTION']);

/** Whether it has a method that only Prisma's lazy promises have. */
function isLazy(operation: unknown): operation is PromiseLike<unknown> {
  return typeof (operation as { requestTransaction?: unknown } | null | undefined)?.requestTransaction === 'function';
}

/** A model of the client. */
class Model extends Facade {
  /** Its name on the client. */
  readonly #name: string;
  readonly #tx: FencedTx;

  constructor(name: string, inner: object, tx: FencedTx) {
    super(inner);
    this.#name = name;
    this.#tx = tx;
  }

  get(_: object, name: string | symbol): unknown {
    const value: unknown = Reflect.get(this.inner, name);
    if (typeof name !== 'string' || typeof value !== 'function') return value;
    const writes = WRITE_NAMES.has(name);
    if (!writes && !READS.has(name)) return value;
    return this.#tx.method(`${this.#name}.${name}`, value as Method, writes);
  }
}

/** One operation that was called. */
class Operation extends Facade {
  readonly name: string;
  readonly #tx: FencedTx;
  /** Where it is until it is used. */
  readonly #waiting: Set<Operation> | undefined;

  constructor(name: string, inner: object, tx: FencedTx, waiting: Set<Operation> | undefined) {
    super(inner);
    this.name = name;
    this.#tx = tx;
    this.#waiting = waiting;
  }

  get(_: object, property: string | symbol): unknown {
    const operation = this.inner;
    if (typeof property !== 'string') return Reflect.get(operation, property);
    if (property === 'requestTransaction') return () => Promise.reject(leavesTransaction(this.name));
    if (property === 'then' || property === 'catch' || property === 'finally') {
      this.#waiting?.delete(this);
      return (...given: unknown[]) => {
        const sent = this.#tx.send(this.name, operation as PromiseLike<unknown>);
        return Reflect.apply(sent[property], sent, given);
      };
    }
    const value: unknown = Reflect.get(operation, property);
    if (typeof value !== 'function') return value;
    return (...given: unknown[]) => {
      const made: unknown = Reflect.apply(value, operation, given);
      // A relation of its result.
      if (isLazy(made)) this.#waiting?.delete(this);
      return this.#tx.watch(`${this.name}.${property}`, made, this.#waiting !== undefined);
    };
  }
}
