import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { fencedLock, InvalidOptionError, type LockOptions, type MemoryStore, memoryStore } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

/** What holds on PGlite, which has one session for all connections, and what does not. docs/guides/testing.md says it. */
/** On a busy machine Postgres, which is in this process, keeps the event loop for seconds. */
const PATIENT: LockOptions = { leaseTime: 20_000, waitTime: 25_000 };

describe('on PGlite', () => {
  const postgres = new PGlite();
  beforeAll(async () => {
    for (const name of readdirSync('prisma/migrations').toSorted()) {
      if (name === 'migration_lock.toml') continue;
      await postgres.exec(readFileSync(join('prisma/migrations', name, 'migration.sql'), 'utf8'));
    }
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });
  afterAll(() => postgres.close());

  const plainClient = () => new PrismaClient({ adapter: new PrismaPGlite(postgres) });
  const clientOf = (redis: MemoryStore = memoryStore(), defaults: LockOptions = {}) =>
    plainClient().$extends(fencedLock({ redis, defaults: { ...PATIENT, ...defaults } }));
  type Client = ReturnType<typeof clientOf>;

  const shared = (store = memoryStore()) => [store, store];

  let products = 0;
  const product = async (quantity: number): Promise<number> => {
    const sql = 'INSERT INTO "Stock" (product, quantity) VALUES ($1, $2) RETURNING id';
    const { rows } = await postgres.query<{ id: number }>(sql, [String(++products), quantity]);
    return rows[0]?.id as number;
  };
  const quantityOf = async (id: number) => {
    const { rows } = await postgres.query<{ quantity: number }>('SELECT quantity FROM "Stock" WHERE id = $1', [id]);
    return rows[0]?.quantity;
  };
  const sell = (prisma: Client, id: number, options: LockOptions = {}, key = `stock:${id}`) =>
    prisma.$withLock(
      key,
      async (tx) => {
        const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
        await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
      },
      options,
    );

  test.each<[string, () => Client[], LockOptions]>([
    ['of one client', () => [clientOf()], {}],
    ['of two clients that share a store', () => shared().map((store) => clientOf(store)), {}],
    ['of two stores, as two processes would have', () => [clientOf(), clientOf()], {}],
    ['of a serializable transaction', () => [clientOf()], { isolationLevel: 'Serializable' }],
  ])('no update of twenty callers is lost: %s', async (_, clients, options) => {
    const [made, id] = [clients(), await product(20)];
    await Promise.all(Array.from({ length: 20 }, (_, n) => sell(made[n % made.length] as Client, id, options)));
    expect(await quantityOf(id)).toBe(0);
  });

  test('a transaction is rolled back: by the function, by its timeout, by the loss of its lease', async () => {
    const id = await product(5);
    const store = memoryStore();
    const prisma = clientOf(store);
    const take = (then: (signal: AbortSignal) => unknown, options: { timeout?: number; leaseTime?: number } = {}) =>
      prisma.$withLock(
        'k',
        async (tx, { signal }) => {
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
          await then(signal);
        },
        { timeout: 20_000, ...options },
      );
    const aborted = (signal: AbortSignal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
    await expect(take(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(take(aborted, { timeout: 200 })).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    const lost = (signal: AbortSignal) => {
      store.flush();
      return aborted(signal);
    };
    await expect(take(lost, { leaseTime: 300 })).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await quantityOf(id)).toBe(5);
  });

  test('an operation outside of the transaction, which would wait for its end, is refused at once: a read, too', async () => {
    const prisma = clientOf();
    const inside = (work: () => Promise<unknown>) => prisma.$withLock('k', async () => void (await work()));
    await expect(inside(() => prisma.stock.count())).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    await expect(inside(() => prisma.$queryRaw`SELECT 1`)).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    await expect(inside(() => prisma.stock.deleteMany())).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    expect(await prisma.$withLock('k', (tx) => tx.stock.count())).toBeGreaterThan(0);
  });

  test('what it cannot do: anything of another client waits while a transaction is open', async () => {
    const [prisma, other] = [clientOf(), plainClient()];
    const seen = await prisma.$withLock('k', async () => {
      const count = other.stock.count().then(() => 'answered');
      const first = await Promise.race([count, new Promise((resolve) => setTimeout(resolve, 300, 'waits'))]);
      return { first, count };
    });
    expect(seen.first).toBe('waits');
    expect(await seen.count).toBe('answered');
  });

  test('in production it is refused', () => {
    vi.stubEnv('NODE_ENV', 'production');
    expect(clientOf).toThrow(InvalidOptionError);
    expect(clientOf).toThrow(/PGlite/);
  });
});
