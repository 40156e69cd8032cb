// Writes docs/pictures/board.png: the board in a real browser, beside three processes that sell for a minute and a half.
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { createBoard, toNodeListener } from '../src/addons/board/index.js';
import { fencedLock } from '../src/index.js';
import { PrismaClient } from '../test/generated/prisma/client.js';
import { startChromium } from '../test/support/chromium.js';
import { refusedWrite } from '../test/support/refused-write.js';
import { startPostgres, startRedis } from '../test/support/servers/index.js';
import type { ShopClient } from '../test/support/shop.js';
import { setUpShop } from '../test/support/shop-database.js';

const OUT = new URL('../docs/pictures/board.png', import.meta.url);
const SIZE = { width: 1280, height: 800 };
const BUSY_FOR = 90_000;
/** Keys, how long one turn takes and how long nobody comes after it; milliseconds. */
const KEYS: ReadonlyArray<readonly [key: string, work: number, rest: number]> = [
  ['stock:1', 12, 20],
  ['stock:2', 12, 45],
  ['stock:17', 40, 500],
  ['order:2048', 120, 400],
  ['customer:81', 90, 900],
  ['invoice:2026-11', 250, 700],
  ['report:daily', 900, 2_000],
  ['cart:5519', 30, 2_500],
];

const [postgres, redisServer, browser] = await Promise.all([startPostgres(), startRedis(), startChromium()]);
const databaseUrl = await setUpShop(postgres);
const stock = await new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) }).stock.create({
  data: { product: 'picture', quantity: 100 },
});
const [web1, web2, jobs] = ['web-1', 'web-2', 'jobs-1'].map((name) => {
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const redis = new Redis(redisServer.url);
  return new PrismaClient({ adapter }).$extends(fencedLock({ redis, name, defaults: { waitTime: 60_000 } }));
}) as [ShopClient, ShopClient, ShopClient];

let selling = true;
async function work(prisma: ShopClient, key: string, turn: number, rest: number): Promise<void> {
  while (selling) {
    await prisma.$withLock(key, () => sleep(turn * (0.5 + Math.random())));
    await sleep(rest * (0.5 + Math.random()));
  }
}

const server = createServer(toNodeListener(createBoard(web1, { title: 'Locks of the shop' }))).listen(0, '127.0.0.1');
const page = await browser.newPage();
await page.setViewport(SIZE);
await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
const loops = [web1, web2, jobs].flatMap((prisma) =>
  KEYS.map(([key, turn, rest]) => work(prisma, key, turn, rest).catch((error: unknown) => console.error(error))),
);
await jobs.$lock('import:nightly');
await sleep(BUSY_FOR);
// A row that two keys write: the later token stands, and the other write is refused.
await refusedWrite(web1, web2, stock.id, 'stock:17', 'cart:5519');
await sleep(1_500);
mkdirSync(new URL('.', OUT), { recursive: true });
await page.screenshot({ path: OUT.pathname as `${string}.png`, optimizeForSpeed: false });
selling = false;
await Promise.all(loops);
await browser.close();
await Promise.all([redisServer.stop(), postgres.stop()]);
process.exit(0);
