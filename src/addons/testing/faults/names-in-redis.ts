import { escaped } from '../../../redis/names.js';
import { onRedis } from '../servers/redis.js';

/**
 * Deletes one name, or all that begin alike, and no others: the server may have other users. A `keyPrefix` in the URL stands
 * before all names. Returns how many there were.
 */
export async function deleteNames(
  url: string,
  which: { readonly name: string } | { readonly prefix: string },
): Promise<number> {
  const server = new URL(url);
  const own = server.searchParams.get('keyPrefix') ?? '';
  server.searchParams.delete('keyPrefix');
  return await onRedis(server.href, async (redis) => {
    if ('name' in which) return await redis.del(own + which.name);
    let deleted = 0;
    for (let cursor = ''; cursor !== '0'; ) {
      const [next, names] = await redis.scan(cursor || '0', 'MATCH', `${escaped(own + which.prefix)}*`, 'COUNT', 1_000);
      if (names.length > 0) deleted += await redis.del(...names);
      cursor = next;
    }
    return deleted;
  });
}
