import { createHash } from 'node:crypto';
import { type PermitName, permitName, permitOf } from '../base/permits.js';

/** The names of a key in Redis. */
export interface Names {
  /** Of a permit: the hash of all permits of its key. */
  readonly lease: string;
  readonly queue: string;
  /**
   * The channel for wake-ups of the key. A waiting process also subscribes to this name with `:` and its receiver id;
   * that subscription shows that the process is alive.
   */
  readonly wake: string;
  /** Where the key is the name of a permit. */
  readonly permit: PermitName | undefined;
}

/**
 * All names of a key have one hash tag, so that a Cluster keeps them in one slot. The tag is the key itself. A key with
 * a `}` would end its tag early, so its tag is a hash, and the key follows the tag. All permits of a key share their names.
 */
export function namesOf(prefix: string, key: string): Names {
  const permit = permitOf(key);
  if (permit !== undefined) {
    const base = baseOf(prefix, permit.key);
    return { lease: `${base}:permits`, queue: `${base}:permits-queue`, wake: `${base}:permits-wake`, permit };
  }
  const base = baseOf(prefix, key);
  return { lease: `${base}:lease`, queue: `${base}:queue`, wake: `${base}:wake`, permit };
}

function baseOf(prefix: string, key: string): string {
  return key.includes('}') ? `${prefix}{${createHash('sha1').update(key).digest('hex')}}:${key}` : `${prefix}{${key}}`;
}

/** A text as a pattern of SCAN that matches it alone. */
export function escaped(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&');
}

/** The key that a name belongs to, or its first permit; `undefined` if the name is not one of this package. */
export function keyOf(prefix: string, name: string): string | undefined {
  // No key has a NUL, and Postgres would refuse to look for one.
  if (!name.startsWith(`${prefix}{`) || name.includes('\0')) return undefined;
  const rest = name.slice(prefix.length);
  const base = rest.replace(/:(lease|queue|permits|permits-queue)$/, '');
  const parts = /^\{([^}]*)\}(?::(.*))?$/s.exec(base);
  const key = parts?.[2] ?? parts?.[1];
  return key !== undefined && /:permits(-queue)?$/.test(rest) ? permitName(key, 0) : key;
}
