// A holder in a process of its own, to be frozen or killed in the middle of its turn.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, redisUrl, key, id, how, leaseTime] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  'idle' | 'receiving' | 'before',
  string,
];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres });
const prisma = new PrismaClient({ adapter }).$extends(
  fencedLock({ redis, defaults: { leaseTime: Number(leaseTime) } }),
);
const where = { id: Number(id) };

const goOn = new Promise<void>((resolve) => {
  process.once('message', () => resolve());
});

try {
  await prisma.$withLock(key, async (tx) => {
    const stock = await tx.stock.findUniqueOrThrow({ where });
    await tx.stock.update({ where, data: { quantity: stock.quantity - 1 } });
    // Far more than the buffers of the connection hold: the server is still sending when the client stands still.
    const large =
      how === 'receiving' ? tx.$queryRaw`SELECT repeat('x', 1000000) FROM generate_series(1, 200)` : undefined;
    const received = large?.then(() => {});
    process.send?.({ type: 'inside' });
    await goOn;
    await received;
    await tx.stock.update({ where, data: { quantity: stock.quantity - 1 } });
  });
  process.send?.({ type: 'end', code: 'committed' });
} catch (error) {
  process.send?.({ type: 'end', code: (error as { code?: string }).code ?? String(error) });
}
await prisma.$disconnect();
redis.disconnect();
process.disconnect();
