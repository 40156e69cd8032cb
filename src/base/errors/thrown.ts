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

/** Of an error, what says what it is. Its other fields may be secret, such as the settings of a connection. */
export function brief(thrown: unknown): unknown {
  if (typeof thrown !== 'object' || thrown === null) return thrown;
  const { name, message, code } = thrown as { readonly [field in 'name' | 'message' | 'code']?: unknown };
  return { name, message, code };
}

/** What JSON shows of a value: bigints as text, errors briefly. A getter, a `toJSON` or a Proxy of the caller may throw. */
export function readable(value: unknown): unknown {
  try {
    const text = JSON.stringify(value, function (this: Record<string, unknown>, name, json: unknown) {
      // Not what the `toJSON` of an error has made of it, which may be all of its fields.
      if (this[name] instanceof Error) return brief(this[name]);
      return typeof json === 'bigint' ? String(json) : json;
    }) as string | undefined;
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return '[not readable]';
  }
}
