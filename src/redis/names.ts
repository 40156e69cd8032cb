import { createHash } from 'node:crypto';

/** The names of a key in Redis. */
export interface Names {
  readonly lease: string;
  readonly queue: string;
  /**
   * The channel for wake-ups of the key. A waiting process also subscribes to this name with `:` and its receiver id;
   * that subscription shows that the process is alive.
   */
  readonly wake: string;
}

/**
 * All names of a key have one hash tag, so that a Cluster keeps them in one slot. The tag is the key itself. A key with
 * a `}` would end its tag early, so its tag is a hash, and the key follows the tag.
 */
export function namesOf(prefix: string, key: string): Names {
  const base = key.includes('}')
    ? `${prefix}{${createHash('sha1').update(key).digest('hex')}}:${key}`
    : `${prefix}{${key}}`;
  return { lease: `${base}:lease`, queue: `${base}:queue`, wake: `${base}:wake` };
}

/** A text as a pattern of SCAN that matches it alone. */
export function escaped(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&');
}

/** The key that a name belongs to; `undefined` if the name is not one of this package. */
export function keyOf(prefix: string, name: string): string | undefined {
  // No key has a NUL, and Postgres would refuse to look for one.
  if (!name.startsWith(`${prefix}{`) || name.includes('\0')) return undefined;
  const base = name.slice(prefix.length).replace(/:(lease|queue)$/, '');
  const parts = /^\{([^}]*)\}(?::(.*))?$/s.exec(base);
  return parts?.[2] ?? parts?.[1];
}
