import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/guides/observability.md'), 'utf8');

/** The program of the page, of this repository's sources and its generated client. */
const PROGRAM = (/^```ts\n([\s\S]*?)^```/m.exec(PAGE)?.[1] ?? '')
  .replaceAll("'prisma-extension-fenced-lock/otel'", "'../../../src/addons/otel/index.js'")
  .replaceAll("'prisma-extension-fenced-lock'", "'../../../src/index.js'")
  .replaceAll('./generated/prisma/', '../prisma/');

describeWithShop('the program of docs/guides/observability.md', () => {
  test('prints the spans of a call, in one trace, and its metrics, and ends', async () => {
    const folder = mkdtempSync(join(ROOT, 'test/generated/traced-'));
    try {
      writeFileSync(join(folder, 'traced.ts'), PROGRAM);
      const env = {
        PATH: process.env['PATH'],
        DATABASE_URL: inject('postgres').app,
        REDIS_URL: inject('redis').url ?? '',
      };
      const args = ['--import', 'tsx', join(folder, 'traced.ts')];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
      const names = [...stdout.matchAll(/^ {2}name: '(.*)'/gm)].map(([, name]) => name);
      expect(names).toEqual(expect.arrayContaining(['wait', 'admission', 'work', 'commit', 'lock stock']));
      expect(new Set(stdout.match(/traceId: '\w+'/g)).size).toBe(1);
      expect(stdout).toContain("name: 'fenced_lock.hold.duration'");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
