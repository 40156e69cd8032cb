// Another process that a handle is handed to: it resumes it, works under it once, and gives it back when it is told to.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock, type HandleState } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, redisUrl, id] = process.argv.slice(2) as [string, string, string];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres });
const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));

const told = (type: string) =>
  new Promise<{ state: HandleState }>((resolve) => {
    process.on('message', (message: { type: string; state: HandleState }) => {
      if (message.type === type) resolve(message);
    });
  });
const goOn = told('release');
process.send?.({ type: 'ready' });

const { state } = await told('resume');
try {
  const lock = await prisma.$resumeLock(state);
  await lock.$transaction((tx) => tx.stock.update({ where: { id: Number(id) }, data: { quantity: 7 } }));
  process.send?.({ type: 'resumed', token: String(lock.token), keys: lock.keys });
  await goOn;
  await lock.release();
} catch (error) {
  process.send?.({ type: 'failed', code: (error as { code?: string }).code ?? String(error) });
}
await prisma.$disconnect();
redis.disconnect();
process.disconnect();
