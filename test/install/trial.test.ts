import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { pack } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';
import { Trial } from './trial.js';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const theirs = (what: RegExp) => what.exec(README)?.[1] ?? '';
const INSTALL = theirs(/^## Start a new project[\s\S]*?^```sh\n([\s\S]*?)^```/m);
const MODEL = theirs(/^```prisma\n([\s\S]*?)^```/m);
const COMMANDS = theirs(/^npx prisma migrate dev --name stock\n([\s\S]*?)^```/m);
const FENCE = theirs(/^## Do you need a fence\?[\s\S]*?^```sh\n([\s\S]*?)^```/m);
const ROW = theirs(/^echo '(INSERT .*)' \|/m);
const PROGRAM = theirs(/^```ts\n([\s\S]*?)^```/m);

const CONFIG = (schema: string) => `import { defineConfig } from 'prisma/config';
export default defineConfig({
  schema: '${schema}',
  migrations: { path: 'prisma/migrations' },
  datasource: { url: process.env['DATABASE_URL'] },
});
`;
const HEAD = (format: 'esm' | 'cjs') => `generator client {
  provider     = "prisma-client"
  output       = "../generated/prisma"
  moduleFormat = "${format}"
}

datasource db {
  provider = "postgresql"
}
`;
const SELL = 'tx.stock.update({ where: { id: 1 }, data: { quantity: { decrement: 1 } } })';

describeWithShop('somebody who tries the package, installed from the registry and the tarball', () => {
  let newcomer: Trial;

  beforeAll(async () => {
    newcomer = await Trial.begin();
  });
  afterAll(() => newcomer?.end());

  /** Another project, with what the newcomer has installed. */
  async function project(files: Record<string, string>): Promise<Trial> {
    const trial = await Trial.begin(files, newcomer.path('node_modules'));
    onTestFinished(() => trial.end());
    return trial;
  }

  /** The lines of a block of commands, in which `prisma migrate deploy` has one migration to apply. */
  async function runs(commands: string): Promise<void> {
    for (const line of commands.trim().split('\n')) {
      if (line.startsWith('npx fenced-lock ')) await newcomer.fencedLock(line.slice('npx fenced-lock '.length));
      if (line.includes('npx prisma migrate deploy')) expect(await newcomer.migrateDeploy()).toHaveLength(1);
      if (line.includes('npx prisma generate')) await newcomer.sh('prisma generate');
    }
  }

  const stock = async ({ database }: Trial) =>
    (await database.pool.query('SELECT quantity, fence::int > 0 AS fenced FROM "Stock" ORDER BY id')).rows;

  test('gets from an empty folder to the first $withLock by the README, and from there to a fence', async () => {
    const tarball = await pack(newcomer.folder);
    const { err } = await newcomer.sh(INSTALL.replace('prisma-extension-fenced-lock', tarball));
    // Prisma 7.10 itself brings a package that asks for Node 22.
    const warned = [...err.matchAll(/EBADENGINE +package: '(.+)@/g)].map(([, name]) => name);
    expect(warned.filter((name) => !name?.startsWith('@prisma/'))).toEqual([]);
    expect(err).not.toContain('ERESOLVE');
    newcomer.write('prisma/schema.prisma', `${newcomer.read('prisma/schema.prisma')}\n${MODEL}`);
    expect(await newcomer.migrateDev('stock')).toHaveLength(1);
    await runs(COMMANDS);
    expect(newcomer.commands).toEqual(['init', 'doctor']);
    expect(await newcomer.complaints()).toEqual([]);
    await newcomer.database.pool.query(ROW);
    newcomer.write('shop.ts', PROGRAM);
    expect((await newcomer.sh('tsx shop.ts')).out).toContain('The quantity is 9 now.\n');
    await runs(FENCE);
    expect(await newcomer.complaints()).toEqual([]);
    expect((await newcomer.sh('tsx shop.ts')).out).toContain('The quantity is 8 now.\n');
    expect(await stock(newcomer)).toEqual([{ quantity: 8, fenced: true }]);
  }, 300_000);

  test('with data, several files of a schema and CommonJS: keeps the data, and reset and migrate dev find no drift', async () => {
    const shop = await project({
      'package.json': '{ "name": "shop", "type": "commonjs" }',
      'prisma.config.ts': CONFIG('prisma'),
      'prisma/main.prisma': HEAD('cjs'),
      'prisma/stock.prisma': MODEL,
      'prisma/order.prisma': 'model Order {\n  id Int @id\n\n  @@map("orders")\n}\n',
    });
    expect(await shop.migrateDev('tables')).toHaveLength(1);
    await shop.database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10), (2, 20)');
    await shop.fencedLock('init');
    await shop.fencedLock('add-fence Stock Order');
    expect(await shop.migrateDeploy()).toHaveLength(2);
    expect(await shop.complaints()).toEqual([]);
    expect(shop.read('prisma/stock.prisma')).toMatch(/^ *fence +BigInt @default\(0\)$/m);
    await shop.sh('prisma generate');
    shop.write(
      'shop.ts',
      `import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from 'prisma-extension-fenced-lock';
import { PrismaClient } from './generated/prisma/client';

async function main() {
  const redis = new Redis(process.env.REDIS_URL as string);
  const adapter = new PrismaPg({ connectionString: process.env.DATABASE_URL });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
  await prisma.$withLock('stock:1', (tx) => ${SELL});
  console.log(typeof require);
  await prisma.$disconnect();
  redis.disconnect();
}
void main();
`,
    );
    expect((await shop.sh('tsx shop.ts')).out).toBe('function\n');
    expect(await stock(shop)).toEqual([
      { quantity: 9, fenced: true },
      { quantity: 20, fenced: false },
    ]);

    expect(await shop.migrateDev('nothing')).toEqual([]);
    expect(await shop.reset()).toHaveLength(3);
    expect(await shop.migrateDev('nothing')).toEqual([]);
    expect(await shop.complaints()).toEqual([]);
    const model = shop.read('prisma/order.prisma');
    shop.write('prisma/order.prisma', model.replace('@id', '@id\n  note String?'));
    expect(await shop.migrateDev('note')).toHaveLength(1);
    expect(await shop.complaints()).toEqual([]);
    await shop.database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10)');
    await shop.sh('tsx shop.ts');
    expect(await stock(shop)).toEqual([{ quantity: 9, fenced: true }]);
  }, 120_000);
});
