import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/guides/testing.md'), 'utf8');
const TESTS = 7;

/** The file that the page builds up, of this repository's sources and its generated client. */
function file(): string {
  const blocks = [...PAGE.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
  // The global setup is a file of its own, and PGlite comes behind this one.
  const parts = blocks.filter((code) => !code.includes('setUpTestServers') && !code.includes('PGlite'));
  return parts
    .join('\n')
    .replaceAll("'prisma-extension-fenced-lock/testing'", "'../../../src/testing/index.js'")
    .replaceAll("'prisma-extension-fenced-lock'", "'../../../src/index.js'")
    .replaceAll('./generated/prisma/', '../../generated/prisma/');
}

test('what docs/guides/testing.md puts in the place of a module is what the tests of the example do', () => {
  const blocks = [...PAGE.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
  const example = (file: string) => readFileSync(join(ROOT, `examples/testing/${file}.ts`), 'utf8');
  expect(blocks).toHaveLength(3);
  // The page has it without types.
  expect(example('src/restock').replaceAll(/: number|: Promise<void>|^\/\*\* .*\n/gm, '')).toBe(blocks[0]);
  expect(example('vitest/restock.test')).toContain(blocks[1]);
  expect(example('jest/restock.test')).toContain(blocks[2]);
});

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
});
