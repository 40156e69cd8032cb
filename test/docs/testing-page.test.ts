import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { blocks, folderFor, ours, ROOT, read } from './page.js';

const PAGE = 'docs/guides/testing.md';
const TESTS = 6;
/** The module of docs/locks.md that exports the client. */
const DB = ours(`
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from 'prisma-extension-fenced-lock';
import { PrismaClient } from './generated/prisma/client.js';

const adapter = new PrismaPg({ connectionString: process.env.DATABASE_URL });
export const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');
export const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
`);

/** The file that the page builds up: the global setup is a file of its own, and PGlite comes behind this one. */
const FILE = ours(
  blocks(PAGE)
    .filter((code) => !code.includes('setUpTestServers') && !code.includes('PGlite'))
    .join('\n'),
);

describeWithShop('docs/guides/testing.md', () => {
  test('its tests pass in node:test', async () => {
    const { folder, remove } = folderFor('page');
    try {
      // Not *.test.ts, which a run of this repository's tests would find.
      writeFileSync(join(folder, 'shop.ts'), FILE);
      const servers = { DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url ?? '' };
      // Of node:test, which would take itself for a child of another runner.
      const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...servers };
      const args = ['--import', 'tsx', '--test', '--test-reporter=tap', join(folder, 'shop.ts')];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
      expect(stdout).toMatch(new RegExp(`^# pass ${TESTS}$`, 'm'));
      expect(stdout).toMatch(/^# fail 0$/m);
    } finally {
      remove();
    }
  }, 60_000);

  test('an application that exports its client is tested on a database of the test, each file on one of its own', async () => {
    const [setup = '', sample = ''] = blocks(PAGE, 'js');
    const { folder, remove } = folderFor('module');
    const write = (file: string, text: string) =>
      writeFileSync(join(folder, file), ours(text).replace("'./prisma'", "'./db'"));
    try {
      mkdirSync(join(folder, 'src'));
      mkdirSync(join(folder, 'test'));
      write('src/db.ts', DB);
      write('src/restock.ts', read('examples/testing/src/restock.ts'));
      write('test/setup.ts', setup);
      // Of both files, each has the row 1 to itself.
      write('test/one.spec.ts', sample);
      write('test/two.spec.ts', sample);
      const global = join(ROOT, 'examples/testing/global-setup.ts');
      const alias = { 'prisma-extension-fenced-lock/testing': join(ROOT, 'src/addons/testing/index.ts') };
      const test = { globalSetup: [global], setupFiles: ['test/setup.ts'], include: ['test/*.spec.ts'] };
      const config = { root: folder, resolve: { alias }, test };
      write('vitest.config.mjs', `export default ${JSON.stringify(config)};`);
      const { admin } = inject('postgres');
      const env = {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        DATABASE_URL: admin,
        REDIS_URL: inject('redis').url,
      };
      const args = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', join(folder, 'vitest.config.mjs')];
      const { stdout } = await promisify(execFile)(process.execPath, [...args, '--reporter=json'], { cwd: ROOT, env });
      expect(JSON.parse(stdout)).toMatchObject({ numPassedTests: 2, numFailedTests: 0, success: true });
    } finally {
      remove();
    }
  }, 60_000);
});
