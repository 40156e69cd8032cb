import { afterEach, inject } from 'vitest';
import type { RedisServer } from '../support/servers/index.js';
import { Shop, type ShopClient, sale } from '../support/shop.js';

/** How Redis goes away, and comes back. */
interface Outage {
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** What the tests of a Redis that goes away work with; the outage of a test ends with it. */
export function outages(redis: () => RedisServer) {
  const { app, admin } = inject('postgres');
  const shop = new Shop(() => ({ postgres: app, admin, redis: redis().url }));
  let ended: (() => Promise<void> | void) | undefined;
  afterEach(async () => {
    // A test that fails must not make the next ones fail.
    await ended?.();
    ended = undefined;
  });

  const kinds: Record<string, Outage> = {
    frozen: { begin: () => redis().freeze(), end: () => redis().thaw() },
    dead: { begin: () => redis().killHard(), end: () => redis().start() },
  };
  /** Returns the function that ends it; the end of the test does so at the latest. */
  async function outage(how: string): Promise<() => Promise<void>> {
    const { begin, end } = kinds[how] as Outage;
    await begin();
    let over = false;
    ended = async () => {
      if (over) return;
      over = true;
      await end();
    };
    return async () => ended?.();
  }

  const sell = (client: ShopClient, id: number, key: string) => client.$withLock(key, sale(id));

  /** A client that has been in use, so that its connections are open. */
  async function warm(options: Parameters<Shop['client']>[0] = {}) {
    const client = shop.client(options);
    const { key } = await shop.product(1);
    await client.prisma.$withLock(key, () => {});
    return client;
  }
  return { shop, outage, sell, warm };
}
