import type { Redis } from 'ioredis';
import type { Redis as Redis5 } from 'ioredis-5';
import { describe, expectTypeOf, test } from 'vitest';
import { fakeLocks, faultLines, testServers } from '../src/addons/testing/index.js';
import {
  type FencedLockError,
  fencedLock,
  type Lock,
  type LockHandle,
  type LockTx,
  type OnceResult,
  type RedisLike,
  type TryResult,
} from '../src/index.js';
import type { PrismaClient } from './generated/prisma/client.js';
import type { ShopClient } from './support/shop.js';

// Checked by the compiler (`npm run check:types`, on TypeScript 5.9 and 7); nothing here runs.
declare const prisma: ShopClient;

describe('types', () => {
  test('the result is what the function returns', () => {
    const sold = () => prisma.$withLock('stock:1', (tx) => tx.stock.findUniqueOrThrow({ where: { id: 1 } }));
    expectTypeOf(sold).returns.resolves.toHaveProperty('fence').toEqualTypeOf<bigint>();
    const plain = () => prisma.$withLock('stock:1', () => 1);
    expectTypeOf(plain).returns.resolves.toEqualTypeOf<number>();
    const tried = () => prisma.$tryWithLock('stock:1', async () => 'in');
    expectTypeOf(tried).returns.resolves.toEqualTypeOf<TryResult<string>>();
  });

  test('tx is the own client, extensions included, without what leaves the transaction', () => {
    const extended = () => prisma.$extends({ model: { stock: { sell: (amount: number) => amount } } });
    type Tx = LockTx<ReturnType<typeof extended>>;
    expectTypeOf<Tx['stock']['sell']>().toEqualTypeOf<(amount: number) => number>();
    expectTypeOf<Tx>().not.toHaveProperty('$transaction');
    expectTypeOf<Tx>().not.toHaveProperty('$withLock');
    expectTypeOf<Tx>().not.toHaveProperty('$extends');
    expectTypeOf<Tx>().toHaveProperty('$queryRaw');
    const work = (client: ReturnType<typeof extended>) => client.$withLock('stock:1', (tx) => tx.stock.sell(1));
    expectTypeOf(work).returns.resolves.toEqualTypeOf<number>();
  });

  test('a helper that takes LockTx takes the tx that the function is given', () => {
    const helper = (tx: LockTx<typeof prisma>) => tx.order.count();
    const work = () => prisma.$withLock('stock:1', helper);
    expectTypeOf(work).returns.resolves.toEqualTypeOf<number>();
  });

  test('the lock shows its key, token and signal', () => {
    const work = () => prisma.$withLock('stock:1', (_, lock) => lock);
    expectTypeOf(work).returns.resolves.toEqualTypeOf<Lock>();
    expectTypeOf<Lock['token']>().toEqualTypeOf<bigint>();
  });

  test('hooks are functions of any result; those that follow no commit get the error', () => {
    expectTypeOf<Lock['afterCommit']>().parameter(0).toEqualTypeOf<() => unknown>();
    expectTypeOf<Lock['afterRollback']>().parameter(0).toEqualTypeOf<(error: unknown) => unknown>();
    expectTypeOf<Lock['onUnknown']>().parameter(0).toEqualTypeOf<(error: FencedLockError) => unknown>();
    const fine = () =>
      prisma.$withLock('k', (_, lock) => lock.afterCommit(async () => 1), { hookErrors: 'throw' as const });
    // @ts-expect-error: no such way
    const wrong = () => prisma.$withLock('k', () => 1, { hookErrors: 'ignore' });
    expectTypeOf([fine, wrong]).items.toBeFunction();
    // A handle has many transactions, each with hooks of its own.
    expectTypeOf<LockHandle<object>>().not.toHaveProperty('afterCommit');
  });

  test('$oncePer has run, with what the function returned, or says when to come again', () => {
    const ran = () =>
      prisma.$oncePer('k', 60_000, async (tx) => tx.order.count(), { atLeast: 1, offset: 1, timeout: 1 });
    expectTypeOf(ran).returns.resolves.toEqualTypeOf<OnceResult<number>>();
    const next = (result: OnceResult<number>) => (result.ran ? result.value : result.next);
    expectTypeOf(next).returns.toEqualTypeOf<number | Date>();
    // @ts-expect-error: it does not wait
    const waiting = () => prisma.$oncePer('k', 60_000, () => 1, { waitTime: 1 });
    // @ts-expect-error: one key
    const several = () => prisma.$oncePer(['k'], 60_000, () => 1);
    expectTypeOf([waiting, several]).items.toBeFunction();
    expectTypeOf<LockTx<typeof prisma>>().not.toHaveProperty('$oncePer');
  });

  test('a client of ioredis 5 is taken as one of 6 is', () => {
    const six = (redis: Redis) => fencedLock({ redis });
    const five = (redis: Redis5) => fencedLock({ redis });
    expectTypeOf(six).returns.toEqualTypeOf<ReturnType<typeof five>>();
  });

  test('a model that is named must have the fence, when the extension is applied', () => {
    const redis = {} as RedisLike;
    const plain = {} as PrismaClient;
    const fine = () => plain.$extends(fencedLock({ redis, models: ['Stock'] }));
    expectTypeOf(fine).returns.toHaveProperty('$withLock');
    const all = () => plain.$extends(fencedLock({ redis }));
    expectTypeOf(all).returns.toHaveProperty('$withLock');
    // @ts-expect-error: no such field
    const without = () => plain.$extends(fencedLock({ redis, models: ['Order'] }));
    // @ts-expect-error: no such model
    const unknown = () => plain.$extends(fencedLock({ redis, models: ['Stocks'] }));
    // @ts-expect-error: not under that name
    const renamed = () => plain.$extends(fencedLock({ redis, models: ['Stock'], fenceField: 'version' }));
    expectTypeOf([without, unknown, renamed]).items.toBeFunction();
  });

  test('redis is a client or a list of clients', () => {
    const redis = {} as RedisLike;
    const one = () => fencedLock({ redis, wake: 'poll', pollInterval: 100 });
    const several = () => fencedLock({ redis: [redis, redis, redis] });
    // @ts-expect-error: not a client
    const wrong = () => fencedLock({ redis: ['redis://host'] });
    // @ts-expect-error: no such way
    const unknown = () => fencedLock({ redis, wake: 'push' });
    expectTypeOf([one, several, wrong, unknown]).items.toBeFunction();
  });

  test('an option of /testing may be undefined, as a value that may be missing is', () => {
    const servers = { migrations: undefined, settings: undefined, allowEmulator: undefined };
    const lines = async () => faultLines(await testServers(servers), { keyPrefix: undefined });
    const fakes = () => {
      const locks = fakeLocks({}, { defaults: undefined, unsetKeyParts: undefined });
      locks.next().isLost({ after: undefined, reason: undefined });
      locks.next().isStale({ after: undefined, reason: undefined, model: undefined });
      locks.next().conflicts({ times: undefined });
    };
    expectTypeOf([lines, fakes]).items.toBeFunction();
  });

  test('an option that does not exist, or is of the wrong type, is refused', () => {
    // @ts-expect-error: no such option
    const unknown = () => prisma.$withLock('k', () => 1, { ttl: 1 });
    // @ts-expect-error: not a number
    const wrong = () => prisma.$withLock('k', () => 1, { waitTime: '1s' });
    // @ts-expect-error: it does not wait
    const waiting = () => prisma.$tryWithLock('k', () => 1, { waitTime: 1 });
    expectTypeOf([unknown, wrong, waiting]).items.toBeFunction();
  });
});
