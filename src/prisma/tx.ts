import { inspect } from 'node:util';
import { withCaller } from '../base/caller.js';
import {
  codeOf,
  cutShort,
  type FencedLockError,
  InsideTransactionError,
  lateOperation,
  skippedOperation,
  toFencedLockError,
} from '../base/errors.js';
import { Facade } from '../base/facade.js';
import type { Hook, SkippedOperation, Unfinished } from '../database/database.js';
import { failedBefore } from './batches.js';
import { HookedWrite, type Target } from './hooked-write.js';

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
 * Properties that JavaScript reads by itself: to await a value, and to make a text or JSON of it. An `await` of a value
 * whose `then` settles nothing would never end.
 */
const OF_LANGUAGE: ReadonlySet<unknown> = new Set(['then', 'toJSON', ...Object.getOwnPropertyNames(Object.prototype)]);

/**
 * Wraps the client of a transaction: without methods that leave it (the array form of `$transaction` would do so
 * silently), and closed when the transaction ends, after which every operation rejects.
 */
export class FencedTx extends Facade {
  readonly #operations: Operations;

  constructor(tx: object, operations: Operations) {
    super(tx);
    this.#operations = operations;
  }

  close(): void {
    this.#operations.isClosed = true;
  }

  get(target: object, property: string | symbol, receiver: unknown): unknown {
    if (property === UNFINISHED) return this.#operations;
    if (this.#operations.isClosed && mayBeOperation(property)) return this.#operations.late(property);
    if (EXITS.has(property)) return exit(String(property));
    if (Object.hasOwn(target, property)) return Reflect.get(target, property, receiver);
    return this.#operations.watched(this.inner, property, Reflect.get(this.inner, property, receiver));
  }

  /** What the function sets stays here: Prisma sets it on the client itself, and all other transactions find it there. */
  override set(target: object, property: string | symbol, value: unknown): boolean {
    return Reflect.set(target, property, value);
  }

  /** Only what can be deleted again: the engine refuses a `get` that gives anything else for a fixed property of the target. */
  override defineProperty(target: object, property: string | symbol, descriptor: PropertyDescriptor): boolean {
    return descriptor.configurable === true && Reflect.defineProperty(target, property, descriptor);
  }

  override deleteProperty(target: object, property: string | symbol): boolean {
    return Reflect.deleteProperty(target, property);
  }

  override has(target: object, property: string | symbol): boolean {
    return !EXITS.has(property) && (Object.hasOwn(target, property) || super.has(target, property));
  }

  override ownKeys(target: object): Array<string | symbol> {
    const names = new Set([...Reflect.ownKeys(target), ...super.ownKeys(target)]);
    return [...names].filter((property) => !EXITS.has(property));
  }

  override getOwnPropertyDescriptor(target: object, property: string | symbol): PropertyDescriptor | undefined {
    if (EXITS.has(property)) return undefined;
    return Reflect.getOwnPropertyDescriptor(target, property) ?? super.getOwnPropertyDescriptor(target, property);
  }
}

/** Whether a property may be a model or an operation: JavaScript does not read it by itself. */
export function mayBeOperation(property: string | symbol): property is string {
  return typeof property === 'string' && !OF_LANGUAGE.has(property);
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
type MakeHooked = (args: readonly unknown[]) => HookedWrite | undefined;

/** Which names of a client are models and writing operations. */
export interface OperationNames {
  /** The schema's names of the models, by what the client calls them: `Stock` of `stock`. */
  readonly models: Pick<ReadonlyMap<string, string>, 'get'>;
  readonly writes: Pick<ReadonlySet<string>, 'has'>;
}

/**
 * Detects operations that were called on a transaction's client and not awaited. Prisma sends an operation only when its
 * `then` is called.
 *
 * - Not sent: a write or raw SQL whose `then`, `catch` or `finally` was not read. A relation of a fluent call makes another
 *   operation of it, which counts in its place. Reads are ignored: not sending them changes nothing.
 * - In flight: an operation of any kind whose `then` was called and whose result has not arrived. Counted here and not
 *   only at the connection, because Prisma sends later than that, and pauses between the statements of an operation.
 * - Refused: an operation that was used, and was skipped by Prisma behind one that failed, or refused here. It rejects.
 */
export class Operations implements Unfinished {
  readonly names: OperationNames;
  readonly #key: string;
  readonly #hook: Hook | undefined;
  readonly #waiting = new Set<Operation>();
  readonly #inFlight = new Set<Settling>();
  /** The models that were used, by their names on the client; usually a few. */
  readonly #models: Model[] = [];
  refused: FencedLockError | undefined;
  /** Set when the transaction ends. Operations that were called before are not sent any more. */
  isClosed = false;

  /** @param hook through which all writes go, if they have to. */
  constructor(names: OperationNames, key: string, hook?: Hook) {
    this.names = names;
    this.#key = key;
    this.#hook = hook;
  }

  get unsent(): string | undefined {
    return firstOf(this.#waiting);
  }

  get inFlight(): string | undefined {
    return firstOf(this.#inFlight);
  }

  /** Returns a property of the client, wrapped if it may write. */
  watched(client: object, name: string | symbol, value: unknown): unknown {
    if (typeof name !== 'string') return value;
    if (typeof value === 'function') {
      return RAW.has(name) ? this.write(name, value as Method, { model: '', name, on: client }) : value;
    }
    const schemaName = typeof value === 'object' && value !== null ? this.names.models.get(name) : undefined;
    if (schemaName === undefined) return value;
    for (const { model, proxy } of this.#models) if (model === name) return proxy;
    const model = new Model(name, schemaName, value as object, this);
    this.#models.push(model);
    return model.proxy;
  }

  /** A method that writes, or raw SQL, which may. @param name in messages. */
  write(name: string, method: Method, target: Target): Method {
    const hook = this.#hook;
    return this.method(name, method, true, hook && ((args) => HookedWrite.called(hook, target, args)));
  }

  /** @param hooked makes of a call what goes through the hook, if there is one. */
  method(name: string, method: Method, mustBeSent: boolean, hooked?: MakeHooked): Method {
    const operations = this;
    return function (...args) {
      const write = hooked?.(args);
      // Called by a function of the proxy: Prisma's messages show the first line on the stack that is none of a proxy.
      const operation: unknown = Reflect.apply(method, this, write?.madeWith ?? args);
      if (write !== undefined) write.made = operation;
      return operations.#watch(name, operation, mustBeSent, write);
    };
  }

  /** Sends an operation by `then`, and counts it until it settles. */
  send(name: string, operation: PromiseLike<unknown>, write?: HookedWrite): Promise<unknown> {
    if (this.isClosed) return Promise.reject(lateOperation(this.#key, name));
    const settling: Settling = { name };
    this.#inFlight.add(settling);
    // Not an async function: the stack of an error goes on to the caller's `await` over derived promises only.
    return (write === undefined ? operation : write.start()).then(
      (value) => {
        this.#inFlight.delete(settling);
        return value;
      },
      (error: unknown) => {
        this.#inFlight.delete(settling);
        const failed = failedBefore(error);
        if (failed !== undefined) throw this.skip({ name, failed });
        const refusal = toFencedLockError(error);
        if (refusal instanceof InsideTransactionError) this.refused ??= refusal;
        // Made below Prisma, where the stack does not lead to the operation.
        withCaller(refusal);
        // The transaction ended before Prisma had passed on all of the operation, and Prisma knows no reason.
        // Or our gate has refused a statement of it, whose error does not name the operation.
        throw this.isClosed && OF_ENDED.has(codeOf(error)) ? cutShort(this.#key, name, error) : error;
      },
    ) as Promise<unknown>;
  }

  /** Notes an operation that Prisma has not sent, and returns its error. */
  skip(skipped: SkippedOperation): FencedLockError {
    const error = skippedOperation(this.#key, skipped);
    this.refused ??= error;
    return error;
  }

  /** A model, or a method, of a transaction that has ended: what is called on it rejects when it is awaited. */
  late(name: string): object {
    return new Proxy(() => new Operation(name, this.late(name), this, undefined, undefined).proxy, {
      get: (target, property) =>
        mayBeOperation(property) ? this.late(`${name}.${property}`) : (Reflect.get(target, property) as unknown),
    });
  }

  #watch(name: string, operation: unknown, mustBeSent: boolean, write: HookedWrite | undefined): unknown {
    // An extension may replace an operation by its own method, which returns an ordinary promise.
    if (write === undefined && !isLazy(operation)) return operation;
    const waiting = mustBeSent ? this.#waiting : undefined;
    const watched = new Operation(name, operation as object, this, waiting, write);
    waiting?.add(watched);
    return watched.proxy;
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

function isLazy(operation: unknown): boolean {
  return typeof (operation as Partial<Lazy> | null | undefined)?.requestTransaction === 'function';
}

/** A model of the client. */
class Model extends Facade {
  /** Its name on the client. */
  readonly model: string;
  readonly #schemaName: string;
  readonly #operations: Operations;

  constructor(model: string, schemaName: string, inner: object, operations: Operations) {
    super(inner);
    this.model = model;
    this.#schemaName = schemaName;
    this.#operations = operations;
  }

  get(_: object, name: string | symbol): unknown {
    const value: unknown = Reflect.get(this.inner, name);
    if (typeof name !== 'string' || typeof value !== 'function') return value;
    const label = `${this.model}.${name}`;
    if (this.#operations.names.writes.has(name)) {
      return this.#operations.write(label, value as Method, { model: this.#schemaName, name, on: this.inner });
    }
    return READS.has(name) ? this.#operations.method(label, value as Method, false) : value;
  }
}

/** What Node shows where an operation is logged in place of its result. */
function shown(name: string): object {
  return { [inspect.custom]: () => `[${name}: an operation; await it for its result]` };
}

/** One operation that was called. */
class Operation extends Facade {
  readonly name: string;
  readonly #operations: Operations;
  /** Where it is until it is used. */
  readonly #waiting: Set<Operation> | undefined;
  readonly #write: HookedWrite | undefined;

  constructor(
    name: string,
    inner: object,
    operations: Operations,
    waiting: Set<Operation> | undefined,
    write: HookedWrite | undefined,
  ) {
    super(inner, shown(name));
    this.name = name;
    this.#operations = operations;
    this.#waiting = waiting;
    this.#write = write;
  }

  get(_: object, property: string | symbol): unknown {
    const operation = this.inner;
    if (typeof property !== 'string') return Reflect.get(operation, property);
    if (property === 'requestTransaction') return () => Promise.reject(leavesTransaction(this.name));
    if (property !== 'then' && property !== 'catch' && property !== 'finally') {
      const value: unknown = Reflect.get(operation, property);
      if (typeof value !== 'function' || OF_LANGUAGE.has(property)) return value;
      const relation = this.#operations.method(
        `${this.name}.${property}`,
        value as Method,
        this.#waiting !== undefined,
        (args) => this.#write?.through(property, args),
      );
      return (...given: unknown[]) => {
        this.#waiting?.delete(this);
        return Reflect.apply(relation, operation, given);
      };
    }
    this.#waiting?.delete(this);
    return (...given: unknown[]) => {
      const sent = this.#operations.send(this.name, operation as PromiseLike<unknown>, this.#write);
      return Reflect.apply(sent[property], sent, given);
    };
  }
}
