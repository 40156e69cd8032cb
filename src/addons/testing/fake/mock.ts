import { InvalidOptionError } from '../../../base/errors.js';
import { Facade } from '../../../base/facade.js';
import { WRITE_NAMES } from '../../../fencing/writes.js';
import { RAW, READS } from '../../../prisma/tx.js';
import { lazily } from './operation.js';

/** The operations of a model, by which a mock of one is known. */
const OPERATIONS: readonly unknown[] = [...WRITE_NAMES, ...READS];

/** One call of an operation of a mock. */
export interface MockCall {
  readonly name: string;
  /** The name of the model on the client, if it is an operation of one. */
  readonly model: string | undefined;
  readonly args: readonly unknown[];
}

/** What happens when an operation is sent. */
export interface Sending {
  /** Called before the test's function. @throws where the operation is refused. */
  admit(call: MockCall): void;
  /** Called behind the result, before whoever awaits the operation goes on. */
  settled(): void | Promise<void>;
}

/**
 * A mock of a client, with raw SQL and the operations of models as Prisma has them: they are sent when they are awaited.
 * Everything else is the mock's own, also what a test runner keeps at its functions (`mock.calls`). What the test did not give
 * says so when it is called.
 */
export class MockClient extends Facade {
  readonly #sending: Sending;
  /** In place of the mock's own. */
  readonly #methods: Readonly<Record<string, unknown>>;

  constructor(mock: object, sending: Sending, methods: Readonly<Record<string, unknown>> = {}) {
    super(mock);
    this.#sending = sending;
    this.#methods = methods;
  }

  get(_: object, name: string | symbol): unknown {
    if (typeof name !== 'string' || Object.hasOwn(this.#methods, name)) return Reflect.get(this.#owner(name), name);
    const value: unknown = Reflect.get(this.inner, name);
    if (value === undefined && !Reflect.has(this.inner, name)) return absentFromClient(name);
    if (RAW.has(name) && typeof value === 'function') return operation(this.inner, value, name, this.#sending);
    if (name.startsWith('$') || !isModel(value)) return value;
    return new MockModel(value, name, this.#sending).proxy;
  }

  override has(_: object, name: string | symbol): boolean {
    return Reflect.has(this.#owner(name), name);
  }

  override defineProperty(_: object, name: string | symbol, as: PropertyDescriptor): boolean {
    return define(this.#owner(name), name, as);
  }

  override getOwnPropertyDescriptor(_: object, name: string | symbol): PropertyDescriptor | undefined {
    const descriptor = Reflect.getOwnPropertyDescriptor(this.#owner(name), name);
    return descriptor && { ...descriptor, configurable: true };
  }

  #owner(name: string | symbol): object {
    return Object.hasOwn(this.#methods, name) ? this.#methods : this.inner;
  }
}

class MockModel extends Facade {
  readonly #name: string;
  readonly #sending: Sending;

  constructor(mock: object, name: string, sending: Sending) {
    super(mock);
    this.#name = name;
    this.#sending = sending;
  }

  get(_: object, name: string | symbol): unknown {
    const value: unknown = Reflect.get(this.inner, name);
    if (typeof name !== 'string' || name === 'then') return value;
    if (OPERATIONS.includes(name)) {
      return value === undefined
        ? absent(name, this.#name)
        : operation(this.inner, value, name, this.#sending, this.#name);
    }
    // Its functions may use private fields.
    return typeof value === 'function' ? standIn(value, (args) => Reflect.apply(value, this.inner, args)) : value;
  }

  override defineProperty(_: object, name: string | symbol, as: PropertyDescriptor): boolean {
    return define(this.inner, name, as);
  }
}

/** Whether it is a mock of a model: it has an operation of Prisma. It may be a function that has them as its properties. */
export function isModel(value: unknown): value is object {
  return (
    value !== null &&
    ['object', 'function'].includes(typeof value) &&
    OPERATIONS.some((name) => functionOf(value as object, name as string))
  );
}

/** A function of a mock, if it has one of this name. Not by `in`: a deep mock makes its functions when they are read. */
export function functionOf(mock: object, name: string): ((...args: unknown[]) => unknown) | undefined {
  try {
    const value: unknown = Reflect.get(mock, name);
    return typeof value === 'function' ? (...args) => Reflect.apply(value, mock, args) as unknown : undefined;
  } catch {
    // A strict mock throws for what it does not have.
    return undefined;
  }
}

function operation(mock: object, given: unknown, name: string, { admit, settled }: Sending, model?: string): unknown {
  if (typeof given !== 'function') return given;
  return standIn(given, (args) => {
    const start = () => {
      admit({ name, model, args });
      return Reflect.apply(given, mock, args) as unknown;
    };
    return lazily(start, settled);
  });
}

/** Stands in for a function of a mock, with what a test runner keeps at it: `call` is called in its place. */
export function standIn(given: object, call: (args: unknown[]) => unknown): object {
  const made = new Proxy(given, { apply: (_, __, args) => call(args) });
  ORIGINALS.set(made, given);
  return made;
}

/** What the test gave, for each function that stands in for it. */
const ORIGINALS = new WeakMap<object, object>();

/** A spy that is taken away puts back what it has found: the stand-in, which would be called twice then. */
function define(owner: object, name: string | symbol, as: PropertyDescriptor): boolean {
  const original = ORIGINALS.get(as.value as object);
  return Reflect.defineProperty(owner, name, original ? { ...as, value: original } : as);
}

/** Names that a model may have on a client. Test runners look for others, such as `$$typeof` and `@@__IMMUTABLE_MAP__@@`. */
const MODEL = /^[A-Za-z]\w*$/;
/** Read by JavaScript itself: to await a value, and to make a text or JSON of it. */
const OF_LANGUAGE: ReadonlySet<string> = new Set(['then', 'toJSON', ...Object.getOwnPropertyNames(Object.prototype)]);
const METHODS: ReadonlySet<unknown> = new Set([...RAW, '$transaction', '$on']);

/** In place of what the test did not give: each operation of Prisma on it says so when it is called. */
function absentFromClient(name: string): unknown {
  if (METHODS.has(name)) return absent(name);
  if (OF_LANGUAGE.has(name) || !MODEL.test(name)) return undefined;
  return new Proxy(Object.freeze({}), {
    get: (none, method) =>
      OPERATIONS.includes(method as string) ? absent(method as string, name) : Reflect.get(none, method),
  });
}

function absent(name: string, model?: string): () => never {
  const [path, given] =
    model === undefined ? [name, `{ ${name}: … }`] : [`${model}.${name}`, `{ ${model}: { ${name}: … } }`];
  return () => {
    throw new InvalidOptionError('prisma', `has no ${path}: give fakeLocks(${given}) what the function works on.`);
  };
}
