import { randomInt } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import type { RedisSite } from '../support/redis-site.js';
import { startWorker, type Worker } from '../support/worker.js';
import { someKey } from '../waiting/actors.js';

export const PERMITS = 3;

/** Processes whose callers ask for the permits of one key, and ask Postgres how many are at work. */
export async function workers(count: number, site: RedisSite) {
  const [key, mark] = [someKey(), randomInt(2 ** 31)];
  const started = Array.from({ length: count }, () => {
    const args = [inject('postgres').app, JSON.stringify(site), key, String(PERMITS), String(mark)];
    const worker = startWorker(new URL('permits.worker.ts', import.meta.url), args);
    onTestFinished(async () => void (await worker.kill()));
    return worker;
  });
  await Promise.all(started.map((worker) => worker.next('ready')));
  return { key, all: started as [Worker, Worker, Worker, Worker] };
}

export async function turns(worker: Worker, count: number): Promise<void> {
  for (let at = 0; at < count; at++) await worker.next('turn');
}

/** Ends the processes. Resolves to what each has seen at work at most, and to how many turns were committed. */
export async function told(all: readonly Worker[]): Promise<{ readonly most: number; readonly committed: number }> {
  const most: number[] = [];
  let committed = 0;
  for (const worker of all) {
    worker.send({ type: 'end' });
    const { most: seen, codes } = await worker.next('told');
    most.push(seen as number);
    committed += (codes as Record<string, number>)['committed'] ?? 0;
  }
  return { most: Math.max(...most), committed };
}
