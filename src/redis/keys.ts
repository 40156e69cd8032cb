import { createHash } from 'node:crypto';

/** The names that a key has in Redis. */
export interface Names {
  readonly lease: string;
  readonly channel: string;
}

/**
 * All names of a key share one hash tag, so that a Cluster keeps them on one node. The tag is the key itself; a key
 * that holds a `}` would end its tag there, so its tag is a hash, and the key stands behind.
 */
export function namesOf(prefix: string, key: string): Names {
  const tagged = key.includes('}') ? `{${createHash('sha1').update(key).digest('hex')}}:${key}` : `{${key}}`;
  return { lease: `${prefix}${tagged}:lease`, channel: `${prefix}${tagged}:wake` };
}
