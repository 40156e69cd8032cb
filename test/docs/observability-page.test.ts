import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { blocks, folderFor, ours, ROOT } from './page.js';

/** The program of the page. */
const PROGRAM = ours(blocks('docs/guides/observability.md')[0] ?? '');

describeWithShop('the program of docs/guides/observability.md', () => {
  test('prints the spans of a call, in one trace, and its metrics, and ends', async () => {
    const { folder, remove } = folderFor('traced');
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
      remove();
    }
  }, 60_000);
});
