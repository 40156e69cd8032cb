/** One name, or all that begin alike. */
export type NamesInRedis = { readonly name: string } | { readonly prefix: string };

/** Deletes names, and no others: the server may have other users. A `keyPrefix` in the URL stands before them. */
export async function deleteNames(url: string, which: NamesInRedis): Promise<void> {
  const { Redis } = await import('ioredis');
  const server = new URL(url);
  const own = server.searchParams.get('keyPrefix') ?? '';
  server.searchParams.delete('keyPrefix');
  const redis = new Redis(server.href, { lazyConnect: true, retryStrategy: () => null, protocol: 2 });
  // connect() rejects with the same error.
  redis.on('error', () => {});
  try {
    await redis.connect();
    if ('name' in which) await redis.del(own + which.name);
    else await deleteAll(redis, own + which.prefix);
  } finally {
    redis.disconnect();
  }
}

interface Scanning {
  scan(cursor: string, match: 'MATCH', pattern: string, count: 'COUNT', step: number): Promise<[string, string[]]>;
  del(...names: string[]): Promise<unknown>;
}

async function deleteAll(redis: Scanning, prefix: string): Promise<void> {
  const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, names] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
    if (names.length > 0) await redis.del(...names);
    cursor = next;
  } while (cursor !== '0');
}
