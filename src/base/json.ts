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
