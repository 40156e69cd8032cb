import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pack } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';
import { Trial } from './trial.js';

const START = readFileSync(new URL('../../docs/start.md', import.meta.url), 'utf8');
const theirs = (what: RegExp) => what.exec(START)?.[1] ?? '';
const INSTALL = theirs(/^## Start a new project[\s\S]*?^```sh\n([\s\S]*?)^```/m);
const MODEL = theirs(/^```prisma\n([\s\S]*?)^```/m);
const COMMANDS = theirs(/^npx prisma migrate dev --name stock\n([\s\S]*?)^```/m);
const FENCE = theirs(/^## Do you need a fence\?[\s\S]*?^```sh\n([\s\S]*?)^```/m);
const ROW = theirs(/^echo '(INSERT .*)' \|/m);
const PROGRAM = theirs(/^```ts\n([\s\S]*?)^```/m);

describeWithShop('somebody who tries the package, installed from the registry and the tarball', () => {
  let newcomer: Trial;

  beforeAll(async () => {
    newcomer = await Trial.begin();
  });
  afterAll(() => newcomer?.end());

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

  test('gets from an empty folder to the first $withLock as Getting started says, and from there to a fence', async () => {
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
});
