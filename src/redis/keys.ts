import { createHash } from 'node:crypto';

/** The names that a key has in Redis. */
export interface Names {
  readonly lease: string;
  readonly channel: string;
}

/**
 * All names of a key share one hash tag, so that a Cluster keeps them on one node. The tag is a hash of the key:
 * a key may hold a `}` itself, which would end a tag made of it.
 */
export function namesOf(prefix: string, key: string): Names {
  const tag = createHash('sha1').update(key).digest('hex').slice(0, 16);
  return { lease: `${prefix}{${tag}}:lease:${key}`, channel: `${prefix}{${tag}}:wake:${key}` };
}
