import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/guides/testing.md'), 'utf8');
const TESTS = 6;
/** The module of docs/locks.md that exports the client. */
const DB = `
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../../../src/index.js';
import { PrismaClient } from '../../prisma/client.js';

const adapter = new PrismaPg({ connectionString: process.env.DATABASE_URL });
export const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');
export const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
`;

/** The file that the page builds up, of this repository's sources and its generated client. */
function file(): string {
  const blocks = [...PAGE.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
  // The global setup is a file of its own, and PGlite comes behind this one.
  const parts = blocks.filter((code) => !code.includes('setUpTestServers') && !code.includes('PGlite'));
  return parts
    .join('\n')
    .replaceAll("'prisma-extension-fenced-lock/testing'", "'../../../src/addons/testing/index.js'")
    .replaceAll("'prisma-extension-fenced-lock'", "'../../../src/index.js'")
    .replaceAll('./generated/prisma/', '../../generated/prisma/');
}

const inPlainScript = () => [...PAGE.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);

describeWithShop('docs/guides/testing.md', () => {
  test('its tests pass in node:test', async () => {
    const folder = mkdtempSync(join(ROOT, 'test/generated/page-'));
    try {
      // Not *.test.ts, which a run of this repository's tests would find.
      writeFileSync(join(folder, 'shop.ts'), file());
      const servers = { DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url ?? '' };
      // Of node:test, which would take itself for a child of another runner.
      const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...servers };
      const args = ['--import', 'tsx', '--test', '--test-reporter=tap', join(folder, 'shop.ts')];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
      expect(stdout).toMatch(new RegExp(`^# pass ${TESTS}$`, 'm'));
      expect(stdout).toMatch(/^# fail 0$/m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);

  test('an application that exports its client is tested on a database of the test, each file on one of its own', async () => {
    const [setup = '', sample = ''] = inPlainScript();
    const restock = readFileSync(join(ROOT, 'examples/testing/src/restock.ts'), 'utf8');
    const folder = mkdtempSync(join(ROOT, 'test/generated/module-'));
    const write = (file: string, text: string) =>
      writeFileSync(
        join(folder, file),
        text
          .replace("'prisma-extension-fenced-lock/testing'", "'../../../../src/addons/testing/index.js'")
          .replace("'./prisma'", "'./db'"),
      );
    try {
      mkdirSync(join(folder, 'src'));
      mkdirSync(join(folder, 'test'));
      write('src/db.ts', DB);
      write('src/restock.ts', restock);
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
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
