import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const TESTING = new URL('../../../../src/addons/testing/index.ts', import.meta.url).href;

/** Tests that wait for a fake lock alone: no other timer, and no socket, is open. */
const TESTS = `
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeLocks } from ${JSON.stringify(TESTING)};

test('a wait that times out', async () => {
  const locks = fakeLocks();
  const other = await locks.hold('k');
  await assert.rejects(locks.prisma.$withLock('k', () => 1, { waitTime: 50 }), { code: 'LOCK_TIMEOUT' });
  other.release();
});
test('work that takes too long', async () => {
  const work = fakeLocks().prisma.$withLock('k', () => new Promise(() => {}), { timeout: 50 });
  await assert.rejects(work, { code: 'TRANSACTION_ABORTED' });
});
test('calls that end in time', async () => {
  const locks = fakeLocks({}, { defaults: { waitTime: 60_000, timeout: 60_000 } });
  const other = await locks.hold('k');
  void locks.hold('other').then(() => locks.hold('other'));
  const call = locks.prisma.$withLock('k', () => 1);
  other.release();
  await call;
  const handle = await locks.prisma.$lock('k');
  await Promise.all([handle.$transaction(() => 1), handle.$transaction(() => 2)]);
  await handle.release();
});
`;

test('tests of node:test that wait for a fake lock come to their end, and what has ended keeps no process running', async () => {
  const args = ['--import', TSX, '--test-reporter', 'tap', '--input-type', 'module', '--eval', TESTS];
  // A process that is kept running is ended, which rejects.
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 });
  expect(stdout).toMatch(/^# pass 3$/m);
});
