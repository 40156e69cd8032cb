import { createHash } from 'node:crypto';

/** The names that a key has in Redis. */
export interface Names {
  readonly lease: string;
  readonly queue: string;
  /** The channel that all hear who wait. With `:` and a receiver's id: where that process shows that it is there. */
  readonly wake: string;
}

/**
 * All names of a key share one hash tag, so that a Cluster keeps them on one node. The tag is the key itself; a key
 * that holds a `}` would end its tag there, so its tag is a hash, and the key stands behind.
 */
export function namesOf(prefix: string, key: string): Names {
  const base = key.includes('}')
    ? `${prefix}{${createHash('sha1').update(key).digest('hex')}}:${key}`
    : `${prefix}{${key}}`;
  return { lease: `${base}:lease`, queue: `${base}:queue`, wake: `${base}:wake` };
}

/** The key that a name belongs to; `undefined` for one of another make. */
export function keyOf(prefix: string, name: string): string | undefined {
  if (!name.startsWith(`${prefix}{`)) return undefined;
  const base = name.slice(prefix.length).replace(/:(lease|queue)$/, '');
  const [, tag, rest] = /^\{([^}]*)\}(?::(.*))?$/s.exec(base) ?? [];
  return rest ?? tag;
}
