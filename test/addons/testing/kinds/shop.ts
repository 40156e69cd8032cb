import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock, type LockOptions, LockTimeoutError } from '../../../../src/index.js';
import { PrismaClient } from '../../../generated/prisma/client.js';

/** A client as an application makes it. */
export function createClient(databaseUrl: string, redisUrl: string, defaults: LockOptions = {}) {
  const redis = new Redis(redisUrl);
  redis.on('error', () => {});
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis, defaults }));
  const close = async () => {
    await prisma.$disconnect();
    redis.disconnect();
  };
  return { prisma, close };
}

export type Client = ReturnType<typeof createClient>['prisma'];

/** Sells one. "Busy" and "sold out" are answers; what is broken is an error. */
export async function sell(prisma: Client, id: number): Promise<'sold' | 'sold out' | 'busy'> {
  try {
    return await prisma.$withLock(`stock:${id}`, async (tx) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      if (quantity === 0) return 'sold out';
      await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
      return 'sold';
    });
  } catch (error) {
    if (error instanceof LockTimeoutError) return 'busy';
    throw error;
  }
}

/** Moves some from one stock to another, as between two accounts. */
export async function transfer(prisma: Client, from: number, to: number, count: number): Promise<void> {
  await prisma.$withLock([`stock:${from}`, `stock:${to}`], async (tx) => {
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id: from } });
    if (quantity < count) throw new Error('not enough');
    await tx.stock.update({ where: { id: from }, data: { quantity: quantity - count } });
    await tx.stock.update({ where: { id: to }, data: { quantity: { increment: count } } });
  });
}

/** Redeems a coupon at once or not at all: who comes second is told to come again. */
export async function redeem(prisma: Client, id: number): Promise<'redeemed' | 'used up' | 'try again'> {
  const tried = await prisma.$tryWithLock(`coupon:${id}`, async (tx) => {
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    if (quantity === 0) return 'used up';
    await tx.stock.update({ where: { id }, data: { quantity: 0 } });
    return 'redeemed';
  });
  return tried.acquired ? tried.value : 'try again';
}

const DAY = 86_400_000;

/** Once a night, on whichever machine comes first. */
export async function closeDay(prisma: Client): Promise<number | 'done'> {
  const run = await prisma.$oncePer('nightly', DAY, (tx) => tx.order.count());
  return run.ran ? run.value : 'done';
}
