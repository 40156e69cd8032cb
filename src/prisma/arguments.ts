import type { HookParams } from './internals.js';

/**
 * The arguments of an operation, as a hook has to pass them on. The hook itself gets a copy of those of a model's operation, in
 * which objects have lost their class, and so their `toJSON`.
 */
export function givenArguments({ model, args, __internalParams: params }: HookParams): unknown {
  return model !== undefined && params !== undefined && 'args' in params ? params.args : args;
}

/**
 * A copy of an operation's arguments as Prisma will send them, so that what this package has checked is what is sent: fields
 * that are inherited count, those called `__proto__` or set to `Prisma.skip` do not, and what `toJSON` returns takes the
 * object's place.
 */
export function asPrismaReads(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || isScalar(value)) return value;
  if (Array.isArray(value)) return value.map(asPrismaReads);
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON !== 'function') return copyOf(value);
  const json: unknown = Reflect.apply(toJSON, value, []);
  return typeof json === 'object' ? asJson(json) : json;
}

/**
 * Prisma leaves what `toJSON` returns as it is, and sends it as JSON: a Date in it becomes a text, and a further `toJSON` is called.
 * In place of a condition or of data, Prisma would ignore the further one. What is checked is what is sent there, too.
 */
function asJson(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : asPrismaReads(JSON.parse(text));
}

function copyOf(value: object): unknown {
  const { __prismaRawParameters__: isRaw, values } = value as Record<string, unknown>;
  // A mark of Prisma's own, which also those can set who send JSON.
  if (isRaw === true) return asPrismaReads(values);
  const copy: Record<string, unknown> = {};
  // Inherited fields, too.
  for (const name in value) {
    const field: unknown = Reflect.get(value, name);
    // An assignment of `__proto__` would give the copy a prototype.
    if (name !== '__proto__' && !isSkip(field)) copy[name] = asPrismaReads(field);
  }
  return copy;
}

/** A value of a column that is an object, or `Prisma.skip` in an array, which Prisma refuses. */
function isScalar(value: object): boolean {
  const { toFixed, d, _getName, _toGraphQLInputType } = value as Record<string, unknown>;
  // The digits of NaN and of Infinity are null.
  const isDecimal = typeof toFixed === 'function' && (Array.isArray(d) || d === null);
  const isNull = typeof _getName === 'function';
  const isField = typeof _toGraphQLInputType === 'function';
  return isDecimal || isNull || isField || isSkip(value) || ArrayBuffer.isView(value) || isDate(value);
}

function isDate(value: object): boolean {
  return value instanceof Date || Object.prototype.toString.call(value) === '[object Date]';
}

/** Known by its method: there is a class of it in each copy of Prisma's runtime. */
function isSkip(value: unknown): boolean {
  return typeof (value as { readonly ifUndefined?: unknown } | null | undefined)?.ifUndefined === 'function';
}
