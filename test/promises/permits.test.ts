import { randomInt } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { permitName } from '../../src/base/permits.js';
import { namesOf } from '../../src/redis/names.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker, type Worker } from '../support/worker.js';
import { someKey } from '../waiting/actors.js';

const PERMITS = 3;

describeWithShop('permits: never more than so many at work, by the account of Postgres', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  async function workers(count: number) {
    const [key, mark] = [someKey(), randomInt(2 ** 31)];
    const started = Array.from({ length: count }, () => {
      const args = [inject('postgres').app, inject('redis').url as string, key, String(PERMITS), String(mark)];
      const worker = startWorker(new URL('permits.worker.ts', import.meta.url), args);
      onTestFinished(async () => void (await worker.kill()));
      return worker;
    });
    await Promise.all(started.map((worker) => worker.next('ready')));
    return { key, all: started as [Worker, Worker, ...Worker[]] };
  }
  const turns = async (worker: Worker, count: number) => {
    for (let at = 0; at < count; at++) await worker.next('turn');
  };

  test('of three processes, frozen, killed and with Redis flushed in between', { timeout: 60_000 }, async () => {
    const { key, all } = await workers(4);
    const [frozen, killed, ...others] = all;
    const { lease, queue } = namesOf('fenced-lock:', permitName(key, 0));
    const redis = shop.redis();
    for (let round = 0; round < 5; round++) {
      frozen.freeze();
      await turns(others[0] as Worker, 10);
      await redis.del(lease, queue);
      frozen.thaw();
      await turns(others[1] as Worker, 10);
      if (round === 2) await killed.kill();
    }
    const told = [];
    for (const worker of [frozen, ...others]) {
      worker.send({ type: 'end' });
      told.push(await worker.next('told'));
    }
    expect(told.map(({ most }) => most as number).every((most) => most <= PERMITS)).toBe(true);
    expect(Math.max(...told.map(({ most }) => most as number))).toBeGreaterThan(1);
  });

  test('that of a holder that is killed is free after its lease', async () => {
    const { key, all } = await workers(2);
    await turns(all[0], 3);
    await all[0].kill();
    await all[1].kill();
    const numbers = await Promise.all(
      Array.from({ length: PERMITS }, async () => {
        const handle = await prisma.$permit(key, { permits: PERMITS });
        return handle.permit;
      }),
    );
    expect(numbers.toSorted()).toEqual([0, 1, 2]);
  });
});
