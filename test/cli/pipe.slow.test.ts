import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';
import { ROOT } from './project.js';

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

test('doctor whose reader goes away after the first line, as `head` does, ends without an error', async () => {
  const env = { ...process.env, DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url };
  const child = spawn(process.execPath, ['--import', tsx, join(ROOT, 'src/cli/main.ts'), 'doctor'], { cwd: ROOT, env });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(said).toBe('');
  expect([0, 1]).toContain(code);
});

test.skipIf(!existsSync('/dev/full'))('a full disk behind stdout is one sentence on stderr', async () => {
  const full = openSync('/dev/full', 'w');
  const main = [join(ROOT, 'src/cli/main.ts'), '--help'];
  const child = spawn(process.execPath, ['--import', tsx, ...main], { cwd: ROOT, stdio: ['ignore', full, 'pipe'] });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  closeSync(full);
  expect(said).toMatch(/^fenced-lock: The output cannot be written: ENOSPC: no space left on device, write\.\n$/);
  expect(code).toBe(1);
});
