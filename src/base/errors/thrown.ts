// How this package reads and shows what somebody has thrown: anything, also an object whose getters throw.

/** The documentation, where it is installed: this package has no site. */
export const DOCS = 'node_modules/prisma-extension-fenced-lock/docs/';

/** A key for a message: escaped, and at most one line long. */
export function quoted(key: string): string {
  const text = JSON.stringify(key);
  return text.length > 120 ? `${text.slice(0, 117)}…"` : text;
}

/** A thrown value as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/**
 * What `read` finds in a thrown value; `undefined` where that throws. Anything may be thrown, also an object whose getters throw: the
 * caller then gets that object, and not the error of a getter.
 */
export function tryRead<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The `code` of a thrown value, if it has one that can be read. */
export function codeOf(error: unknown): unknown {
  return tryRead(() => (error as { readonly code?: unknown } | null | undefined)?.code);
}

/** A thrown value as text. Anything may be thrown, also an object that has no text. */
export function shown(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'a value without a text';
  }
}

/** The cause's message for this error's message, at most a few lines, because logs often keep the message only. */
export function reason(cause: unknown): string {
  const message: unknown = tryRead(() => cause instanceof Error && cause.message);
  if (typeof message !== 'string') return '';
  // Without the page of an error of this package: the outer error names its own.
  const page = message.endsWith(')') ? message.lastIndexOf(` (see ${DOCS}`) : -1;
  const text = (page < 0 ? message : message.slice(0, page)).replace(/\.$/, '');
  return `: ${text.length > 300 ? `${text.slice(0, 299)}…` : text}`;
}

/** Deeper values are cut off: `JSON.stringify` would exceed the stack. */
const MOST_LEVELS = 64;
/** A getter, a `toJSON` or a Proxy of the caller has thrown. */
const UNREADABLE = '[not readable]';

/** What JSON shows of a cause. Its other fields may be secret, such as the settings of a connection. */
export function briefCause(cause: unknown): unknown {
  if (typeof cause !== 'object' || cause === null) return plain(cause);
  try {
    const { name, message, code } = cause as { readonly [field in 'name' | 'message' | 'code']?: unknown };
    return { name: textOf(name), message: textOf(message), code: textOf(code) };
  } catch {
    return UNREADABLE;
  }
}

/** Anything may be thrown, also an error whose message is no text. */
function textOf(field: unknown): unknown {
  return typeof field === 'object' ? undefined : plain(field);
}

/**
 * Copies a value for `JSON.stringify`, so that this cannot throw: bigints become decimal strings, errors become name,
 * message and code, and what cannot be read or contains itself becomes a text in brackets.
 *
 * @param within the objects that contain this value, the outermost first.
 */
export function plain(value: unknown, within: readonly object[] = []): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (within.includes(value)) return '[circular]';
  if (within.length === MOST_LEVELS) return '[too deep]';
  const inside = [...within, value];
  try {
    if (value instanceof Error) return briefCause(value);
    const { toJSON } = value as { readonly toJSON?: unknown };
    if (typeof toJSON === 'function') return plain(toJSON.call(value), inside);
    if (Array.isArray(value)) return value.map((each) => plain(each, inside));
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each, inside)]));
  } catch {
    return UNREADABLE;
  }
}
