// An application of Nest that works under a lock, while another caller waits for it. No decorator, which tsx would not compile.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { FencedLockModule, FencedLockService } from '../../../src/addons/nest/index.js';
import { fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../generated/prisma/client.js';

const [postgres, redisUrl, key, id] = process.argv.slice(2) as [string, string, string, string];
const redis = new Redis(redisUrl);
const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) }).$extends(
  fencedLock({ redis }),
);
const tell = (type: string, more = {}) => process.send?.({ type, ...more });

class App {}
/** From here on its end waits for nobody. */
let began = 0;
const onClosed = () => {
  redis.disconnect();
  tell('redis closed', { took: performance.now() - began });
};
const imports = [FencedLockModule.forRoot({ client, onClosed })];
const app = await NestFactory.createApplicationContext({ module: App, imports }, { logger: false });
app.enableShutdownHooks();

const locks = app.get<FencedLockService<typeof client>>(FencedLockService);
const told = new Promise<void>((resolve) => {
  process.once('message', () => {
    began = performance.now();
    resolve();
  });
});
void locks
  .withLock(key, async (tx) => {
    tell('working');
    await told;
    await tx.stock.update({ where: { id: Number(id) }, data: { quantity: { decrement: 1 } } });
  })
  .then(() => tell('committed'));
void locks.withLock(key, () => {}).catch(({ code }: { code?: string }) => tell('turned away', { code }));
tell('waiting');
