import { InvalidOptionError } from '../../../base/errors.js';
import { isWrite, OPERATIONS } from '../../../prisma/outside.js';
import { RAW } from '../../../prisma/tx.js';

/** One call of a function of a mock. */
export interface MockCall {
  readonly name: string;
  /** The name of the model on the client, if it is a function of one. */
  readonly model: string | undefined;
  readonly args: readonly unknown[];
  /** Calls the test's function. */
  call(...args: readonly unknown[]): unknown;
}

/** Whether the real locks would take it for a write: by its name, or by its raw SQL. */
export function writes({ name, args }: MockCall): boolean {
  // As a query hook gets it: `$queryRaw` is called with a template, or with a `Sql`.
  const template = Array.isArray(args[0]) ? { strings: args[0] } : args[0];
  return isWrite(name, name === '$queryRaw' ? template : args);
}

/** A mock of a client, or of a model, may be a function that has the operations as its properties. */
export function isObject(value: unknown): value is object {
  return value !== null && ['object', 'function'].includes(typeof value);
}

/** Whether it is a mock of a model: it has an operation of Prisma. */
function isModel(value: unknown): value is object {
  return isObject(value) && OPERATIONS.some((name) => functionOf(value, name) !== undefined);
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

/**
 * Returns the properties of a mock of a client, with raw SQL and the functions of models called by `run`. Everything else is
 * the mock's own, also what a test runner keeps at its functions (`mock.calls`). What the test did not give says so when it is
 * called: models, raw SQL, and the methods that `others` names.
 */
export function watchedMock(mock: object, run: (call: MockCall) => unknown, ...others: readonly string[]) {
  const models = new Map<string, { readonly mock: object; readonly model: object }>();
  return (name: string | symbol, value: unknown): unknown => {
    if (typeof name !== 'string') return value;
    if (value === undefined && !Reflect.has(mock, name)) {
      return RAW.has(name) || others.includes(name) ? absent(name) : absentModel(name);
    }
    if (typeof value === 'function' && RAW.has(name)) return watchedMethod(value, name, mock, run);
    if (name.startsWith('$') || !isModel(value)) return value;
    const known = models.get(name);
    if (known?.mock === value) return known.model;
    const model = watchedModel(value, name, run);
    models.set(name, { mock: value, model });
    return model;
  };
}

function watchedModel(mock: object, name: string, run: (call: MockCall) => unknown): object {
  const methods = new Map<string, { readonly method: object; readonly watched: object }>();
  const model = standIn(mock, (method) => {
    const value: unknown = Reflect.get(mock, method);
    if (typeof method !== 'string' || method === 'then') return value;
    if (value === undefined && OPERATIONS.includes(method)) return absent(method, name);
    if (typeof value !== 'function') return value;
    const known = methods.get(method);
    if (known?.method === value) return known.watched;
    const watched = watchedMethod(value, method, mock, run, name);
    methods.set(method, { method: value, watched });
    return watched;
  });
  ORIGINALS.set(model, mock);
  return model;
}

/** A function of `self` that is called by `run`. */
export function watchedMethod(
  method: object,
  name: string,
  self: object,
  run: (call: MockCall) => unknown,
  model?: string,
): (...args: unknown[]) => unknown {
  const watched = new Proxy(method as (...args: unknown[]) => unknown, {
    apply: (target, _, args: unknown[]) =>
      run({ name, model, args, call: (...given) => Reflect.apply(target, self, given) as unknown }),
  });
  ORIGINALS.set(watched, method);
  return watched;
}

/** What the test gave, for each model and each function that stands in for it. */
const ORIGINALS = new WeakMap<object, object>();

/** A spy that is taken away puts back what it has found: the stand-in, which would be watched twice then. */
function originalOf(value: unknown): unknown {
  return isObject(value) ? (ORIGINALS.get(value) ?? value) : value;
}

/**
 * Stands in for `of`, with other values of its properties. A proxy with a target of its own: the engine compares a value
 * with the target's own property, which a frozen mock cannot change. `ownerOf`: the object that a property is set on.
 */
export function standIn(
  of: object,
  get: (name: string | symbol) => unknown,
  ownerOf: (name: string | symbol) => object = () => of,
): object {
  return new Proxy(typeof of === 'function' ? () => {} : {}, {
    get: (_, name) => get(name),
    apply: (_, self, args) => Reflect.apply(of as () => unknown, self, args),
    has: (_, name) => Reflect.has(ownerOf(name), name),
    set: (_, name, value) => Reflect.set(ownerOf(name), name, originalOf(value)),
    defineProperty(_, name, as) {
      const own = 'value' in as ? { ...as, value: originalOf(as.value) } : as;
      return Reflect.defineProperty(ownerOf(name), name, { ...own, configurable: true });
    },
    deleteProperty: (_, name) => Reflect.deleteProperty(ownerOf(name), name),
    ownKeys: () => Reflect.ownKeys(of),
    getOwnPropertyDescriptor(_, name) {
      const descriptor = Reflect.getOwnPropertyDescriptor(ownerOf(name), name);
      if (descriptor === undefined) return undefined;
      return { ...descriptor, ...('value' in descriptor && { value: get(name) }), configurable: true };
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(of),
  });
}

/** A model as Prisma names it, by its property of the client. */
export function modelOf(delegate: string): string {
  return delegate.charAt(0).toUpperCase() + delegate.slice(1);
}

/** Names that a model may have on a client. Test runners look for others, such as `$$typeof` and `@@__IMMUTABLE_MAP__@@`. */
const MODEL = /^[A-Za-z]\w*$/;

/**
 * Properties that JavaScript reads by itself: to await a value, and to make a text or JSON of it. An `await` of a value
 * whose `then` settles nothing would never end.
 */
const OF_LANGUAGE: ReadonlySet<string> = new Set(['then', 'toJSON', ...Object.getOwnPropertyNames(Object.prototype)]);

/**
 * In place of a model that the test did not give: each operation of Prisma on it says so when it is called. It cannot be told
 * from a value that an extension gives to a client, such as a tenant's id, so its use as text or as a number says so, too.
 */
function absentModel(name: string): object | undefined {
  if (OF_LANGUAGE.has(name) || !MODEL.test(name)) return undefined;
  const refuse = absent(name);
  return new Proxy(Object.freeze({}), {
    get(target, property) {
      if (property === Symbol.toPrimitive) return refuse;
      return OPERATIONS.includes(property as string) ? absent(property as string, name) : Reflect.get(target, property);
    },
  });
}

/** In place of a method of Prisma that the test did not give: says so when it is called. */
function absent(name: string, model?: string): () => never {
  return () => {
    throw missing(name, model);
  };
}

/** What is not there because the test did not give it. */
function missing(name: string, model?: string): InvalidOptionError {
  const [path, given] =
    model === undefined ? [name, `{ ${name}: … }`] : [`${model}.${name}`, `{ ${model}: { ${name}: … } }`];
  return new InvalidOptionError('prisma', `has no ${path}: give fakeLocks(${given}) what the function works on.`);
}

/** In place of a client that the test did not give. */
export function noClient(): object {
  return new Proxy(
    {},
    {
      get(_, name) {
        // Whoever awaits it, prints it or compares it asks for these.
        if (typeof name === 'symbol' || ['then', 'toJSON', 'asymmetricMatch'].includes(name)) return undefined;
        throw missing(name);
      },
    },
  );
}
