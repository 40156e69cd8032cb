import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { membersOf } from '../../src/addons/testing/servers/process-members.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

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

describeWithShop('a parent that dies', () => {
  for (const end of ['SIGKILL', 'SIGTERM'] as const) {
    test(`of ${end} leaves no server, no worker and no directory, frozen ones included`, async () => {
      const parent = startWorker(fixture, [], withoutUrls);
      const { pids, dirs } = await parent.next<Started>('started');
      expect(pids.map(lives)).toEqual([true, true, true, true]);
      expect(dirs.map(existsSync)).toEqual([true, true, true]);

      process.kill(parent.pid, end);
      await parent.exited;
      await eventually('the processes are gone', async () => !pids.some(lives));
      await eventually('the directories are gone', async () => !dirs.some(existsSync));
      expect(dirs.flatMap((dir) => membersOf({ dir }))).toEqual([]);
    });
  }
});

describeWithShop('a parent that is killed while it starts servers', () => {
  // Of its own, to see what is left in it.
  let temp: string;

  beforeEach(() => {
    temp = mkdtempSync(join(realpathSync(tmpdir()), 'fenced-lock-killed-'));
    chmodSync(temp, 0o777);
    return () => rmSync(temp, { recursive: true, force: true });
  });

  const left = () => readdirSync(temp).filter((name) => /^fenced-lock-/.test(name));

  async function startAndKill(when: 'starting' | 'started', after = 0): Promise<void> {
    const parent = startWorker(fixture, [], { ...withoutUrls, TMPDIR: temp });
    await parent.next(when);
    await sleep(after);
    await parent.kill();
    const isGone = async () => left().length === 0 && membersOf({ dir: temp }).length === 0;
    await eventually(`all is gone, killed after ${after} ms`, isGone);
    // Whoever was late would have written again.
    await sleep(200);
    expect(left()).toEqual([]);
  }

  test('leaves nothing, whatever the moment', { timeout: 120_000 }, async () => {
    await startAndKill('started');
    for (const after of [0, 25, 50, 100, 200, 400]) await startAndKill('starting', after);
  });
});
