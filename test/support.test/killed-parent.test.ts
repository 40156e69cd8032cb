import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { membersOf } from '../support/servers/process-members.mjs';
import { startWorker } from '../support/worker.js';
import { until } from './until.js';

interface Started {
  readonly type: 'started';
  readonly pids: number[];
  readonly dirs: string[];
  readonly [field: string]: unknown;
}

// Where nothing collects the dead of dead parents, as in many containers, they stay as zombies.
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

const fixture = new URL('fixtures/servers-parent.ts', import.meta.url);
const withoutUrls = { DATABASE_URL: '', REDIS_URL: '' };

for (const end of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a parent that dies of ${end} leaves no server, no worker and no directory, frozen ones included`, async () => {
    const parent = startWorker(fixture, [], withoutUrls);
    const { pids, dirs } = await parent.next<Started>('started');
    expect(pids.map(lives)).toEqual([true, true, true, true]);
    expect(dirs.map(existsSync)).toEqual([true, true, true]);

    process.kill(parent.pid, end);
    await parent.exited;
    await until(() => !pids.some(lives), 'the processes are gone');
    await until(() => !dirs.some(existsSync), 'the directories are gone');
    expect(dirs.flatMap((dir) => membersOf({ dir }))).toEqual([]);
  });
}

test('a parent that is killed at any moment of its start leaves nothing', { timeout: 120_000 }, async () => {
  // A temp directory of its own, to see what is left in it. Its cache is empty the first time.
  const temp = mkdtempSync(join(realpathSync(tmpdir()), 'fenced-lock-killed-'))
  chmodSync(temp, 0o777)
  const left = () => readdirSync(temp).filter(name => /^fenced-lock-(?!cache-pg)/.test(name))
  try {
    for (const after of [100, 300, 1_000, 0, 25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 300, 350]) {
      const parent = startWorker(fixture, [], { ...withoutUrls, TMPDIR: temp })
      await parent.next('starting')
      await sleep(after)
      await parent.kill()
      await until(() => left().length === 0, `the directories of a parent killed after ${after} ms are gone`)
      await until(() => membersOf({ dir: temp }).length === 0, `the processes of a parent killed after ${after} ms are gone`)
      // Whoever was late would have written to them again.
      await sleep(200)
      expect(left()).toEqual([])
    }
  } finally {
    rmSync(temp, { recursive: true, force: true })
  }
})
