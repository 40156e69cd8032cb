import type { Redis } from 'ioredis';
import { escaped } from '../../../redis/names.js';
import { onRedis } from '../servers/redis.js';

/** One name, or all that begin alike. */
export type NamesInRedis = { readonly name: string } | { readonly prefix: string };

/** Deletes names, and no others: the server may have other users. Returns how many there were. */
export async function deleteNames(url: string, which: NamesInRedis): Promise<number> {
  return await connected(url, async (redis, own) => {
    if ('name' in which) return await redis.del(own + which.name);
    let deleted = 0;
    for await (const names of scan(redis, `${escaped(own + which.prefix)}*`)) deleted += await redis.del(...names);
    return deleted;
  });
}

/** The prefixes of the leases in the part of Redis that a URL with a `keyPrefix` names. Without one that part is everybody's. */
export async function prefixesOfLeases(url: string): Promise<string[]> {
  return await connected(url, async (redis, own) => {
    const found = new Set<string>();
    if (own === '') return [];
    for await (const names of scan(redis, `${escaped(own)}*{*}*:lease`)) {
      for (const name of names) found.add(name.slice(own.length, name.indexOf('{', own.length)));
    }
    return [...found];
  });
}

/** A `keyPrefix` in the URL stands before all names. */
async function connected<T>(url: string, work: (redis: Redis, own: string) => Promise<T>): Promise<T> {
  const server = new URL(url);
  const own = server.searchParams.get('keyPrefix') ?? '';
  server.searchParams.delete('keyPrefix');
  return await onRedis(server.href, (redis) => work(redis, own));
}

async function* scan(redis: Redis, pattern: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, names] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
    if (names.length > 0) yield names;
    cursor = next;
  } while (cursor !== '0');
}
