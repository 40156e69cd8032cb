import { ClosedError, InsideTransactionError } from '../base/errors.js';

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
export function fencedTx(tx: object, key: string, unsent: Unsent): { readonly tx: object; close(): void } {
  let open = true;
  // The proxy has a target of its own. After each `get`, the engine compares the value with the target's own property,
  // and Prisma's client is a proxy that computes that property again.
  const proxy = new Proxy(
    {},
    {
      get(_, property, receiver) {
        if (!open && typeof property === 'string') return refusing(key);
        if (EXITS.has(property)) return exit(String(property));
        if (property === UNSENT) return unsent.first;
        return unsent.watched(property, Reflect.get(tx, property, receiver));
      },
      has: (_, property) => !EXITS.has(property) && Reflect.has(tx, property),
      set: (_, property, value, receiver) => Reflect.set(tx, property, value, receiver),
      // Assignments arrive here, too, because the receiver is this proxy.
      defineProperty: (_, property, descriptor) => Reflect.defineProperty(tx, property, descriptor),
      deleteProperty: (_, property) => Reflect.deleteProperty(tx, property),
      ownKeys: () => Reflect.ownKeys(tx).filter((property) => !EXITS.has(property)),
      getOwnPropertyDescriptor(_, property) {
        const descriptor = EXITS.has(property) ? undefined : Reflect.getOwnPropertyDescriptor(tx, property);
        return descriptor && { ...descriptor, configurable: true };
      },
      getPrototypeOf: () => Reflect.getPrototypeOf(tx),
    },
  );
  return {
    tx: proxy,
    close() {
      open = false;
    },
  };
}

/** A model, or an operation, that can be called and always rejects. */
function refusing(key: string): unknown {
  const refuse = () =>
    Promise.reject(
      new ClosedError(
        'The transaction of this lock has ended, and the operation was not sent. Await every operation inside the function.',
        { key },
      ),
    );
  return new Proxy(refuse, { get: (_, property) => (property === 'then' ? undefined : refuse) });
}

/** `$extends` is undefined: extensions test it to find out whether they are inside a transaction. */
function exit(name: string): unknown {
  if (name === '$extends') return undefined;
  return () => {
    throw new InsideTransactionError(
      `\`${name}\` was called on the client of a lock's transaction, and would leave that transaction. Call it on the ` +
        'base client, outside the function.',
    );
  };
}

/** The property that returns the first operation that was called and not sent. */
export const UNSENT = Symbol('prisma-extension-fenced-lock.unsent');

const RAW: ReadonlySet<unknown> = new Set([
  '$executeRaw',
  '$executeRawUnsafe',
  '$queryRaw',
  '$queryRawUnsafe',
  '$queryRawTyped',
]);

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Which names of a client are models and writing operations. */
export interface OperationNames {
  isModel(name: string): boolean;
  isWrite(name: string): boolean;
}

/**
 * Detects writes and raw SQL that were called on a transaction's client and never awaited. Prisma sends an operation
 * only when its `then` is called. Reading any property of the operation counts as use: `then`, `catch`, or a relation
 * of a fluent call, which makes another operation of it. Read operations are ignored: not sending them changes nothing.
 */
export class Unsent {
  readonly operations: OperationNames;
  readonly #waiting = new Set<Watched>();
  /** The models that were used, by their names on the client; usually a few. */
  readonly #delegates: Delegate[] = [];

  constructor(operations: OperationNames) {
    this.operations = operations;
  }

  get first(): string | undefined {
    for (const { name } of this.#waiting) return name;
    return undefined;
  }

  /** Returns a property of the client, wrapped if it may write. */
  watched(name: string | symbol, value: unknown): unknown {
    if (typeof name !== 'string') return value;
    if (typeof value === 'function') return RAW.has(name) ? this.method(name, value as Method) : value;
    if (typeof value !== 'object' || value === null || !this.operations.isModel(name)) return value;
    for (const { model, proxy } of this.#delegates) if (model === name) return proxy;
    const delegate = new Delegate(name, value, this);
    this.#delegates.push(delegate);
    return delegate.proxy;
  }

  method(name: string, method: Method): Method {
    const unsent = this;
    return function (...args) {
      return unsent.#watch(name, Reflect.apply(method, this, args));
    };
  }

  /** An extension may replace an operation by its own method, which returns an ordinary promise. */
  #watch(name: string, operation: unknown): unknown {
    if (operation instanceof Promise || typeof (operation as Partial<Lazy> | null)?.requestTransaction !== 'function') {
      return operation;
    }
    const handler = new Watched(name, this.#waiting);
    this.#waiting.add(handler);
    return new Proxy(operation as object, handler);
  }
}

/** A method that only Prisma's lazy promises have. */
interface Lazy {
  requestTransaction(): unknown;
}

/** A model of the client. Its proxy has a target of its own, as in `fencedTx`. */
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
    const writes = typeof name === 'string' && this.#unsent.operations.isWrite(name) && typeof value === 'function';
    return writes ? this.#unsent.method(`${this.model}.${name}`, value as Method) : value;
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

/** One operation, until one of its properties is read. */
class Watched implements ProxyHandler<object> {
  readonly name: string;
  readonly #waiting: Set<Watched>;

  constructor(name: string, waiting: Set<Watched>) {
    this.name = name;
    this.#waiting = waiting;
  }

  get(operation: object, property: string | symbol): unknown {
    if (typeof property === 'string') this.#waiting.delete(this);
    return Reflect.get(operation, property);
  }
}
