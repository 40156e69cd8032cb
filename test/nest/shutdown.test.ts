import 'reflect-metadata';
import { type BeforeApplicationShutdown, Global, Module } from '@nestjs/common';
import { expect, inject, test } from 'vitest';
import { FencedLockModule } from '../../src/nest/index.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';
import { listening, Stop } from './shop.js';

/** Half a second where nothing else runs; nobody who waits for a lock would have it before 10 seconds, or gives up sooner. */
const SHORTLY = 6_000;

describeWithShop('the end of an application of Nest', () => {
  const shop = new Shop();
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);
  const queued = (key: string) =>
    eventually('it waits', async () => (await shop.redis().llen(`fenced-lock:{${key}}:queue`)) === 1);

  test('turns waiting requests away, lets the work that runs commit, gives leases back and disconnects', async () => {
    const { id, key } = await shop.product(10);
    const elsewhere = await shop.product(10);
    const name = `nest-${key.split(':')[2]}`;
    // Its connections would not end by themselves.
    const { prisma } = shop.client({ pool: { application_name: name, idleTimeoutMillis: 0 } });
    const stop = new Stop();
    const steps: unknown[] = [];
    const onClosed = () => steps.push('closed');
    const { app, post } = await listening(shop, { lock: { client: prisma, onClosed }, stop });
    const other = await shop.client().prisma.$lock(elsewhere.key);
    const mine = await prisma.$lock(`${key} handle`);
    const works = post(`stop/${id}`, { key });
    await stop.inside.opened;
    const waits = [post(`sell/${id}`, { key }), post(`sell/${elsewhere.id}`, { key: elsewhere.key })];
    await queued(elsewhere.key);
    const began = performance.now();
    const closed = app.close().then(() => steps.push('ended'));
    for (const response of await Promise.all(waits)) {
      expect([response.status, await response.json()]).toEqual([503, expect.objectContaining({ code: 'CLOSED' })]);
    }
    expect(steps).toEqual([]);
    stop.goOn.open();
    const response = await works;
    expect([response.status, await response.text()]).toEqual([200, '9']);
    await closed;
    expect(performance.now() - began).toBeLessThan(SHORTLY);
    expect(steps).toEqual(['closed', 'ended']);
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(mine.signal.reason).toMatchObject({ code: 'CLOSED' });
    expect(await inRedis(key)).toEqual([]);
    expect(await inRedis(elsewhere.key)).toEqual([`fenced-lock:{${elsewhere.key}}:lease`]);
    await eventually(
      'its sessions have ended',
      async () => {
        const sessions = await shop.admin.query('SELECT 1 FROM pg_stat_activity WHERE application_name = $1', [name]);
        return sessions.rowCount === 0;
      },
      { within: 5_000 },
    );
    await other.release();
  });

  test('turns requests away that come for a lock while other modules are still ending', async () => {
    const { id, key } = await shop.product(10);
    const slow = new Stop();
    // Nest ends global modules last: this one after that of the locks.
    @Global()
    @Module({})
    class Slow implements BeforeApplicationShutdown {
      async beforeApplicationShutdown(): Promise<void> {
        slow.inside.open();
        await slow.goOn.opened;
      }
    }
    const { prisma } = shop.client();
    const { app, post } = await listening(shop, { lock: { client: prisma, isGlobal: false }, imports: [Slow] });
    const holder = await shop.client().prisma.$lock(key);
    const closed = app.close();
    await slow.inside.opened;
    const response = await post(`sell/${id}`, { key });
    expect([response.status, await response.json()]).toEqual([503, expect.objectContaining({ code: 'CLOSED' })]);
    slow.goOn.open();
    await closed;
    await holder.release();
  });

  test('leaves the client connected, and its locks closed, with `disconnect: false`', async () => {
    const { key } = await shop.product(10);
    const name = `kept-${key.split(':')[2]}`;
    const { prisma } = shop.client({ pool: { application_name: name } });
    const { app } = await listening(shop, { lock: { client: prisma, disconnect: false } });
    await prisma.$lock(key);
    await app.close();
    expect(await inRedis(key)).toEqual([]);
    const sessions = await shop.admin.query('SELECT 1 FROM pg_stat_activity WHERE application_name = $1', [name]);
    expect(sessions.rowCount).toBeGreaterThan(0);
  });

  test('comes with SIGTERM where shutdown hooks are enabled, in the same order', async () => {
    const { id, key } = await shop.product(10);
    const { app: postgres } = inject('postgres');
    const args = [postgres, inject('redis').url as string, key, String(id)];
    const worker = startWorker(new URL('./server.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.kill());
    await worker.next('working', { within: 60_000 });
    await worker.next('waiting');
    const began = performance.now();
    process.kill(worker.pid, 'SIGTERM');
    expect(await worker.next('turned away')).toMatchObject({ code: 'CLOSED' });
    worker.send({ type: 'go on' });
    await worker.next('committed');
    await worker.next('redis closed');
    expect(await worker.exited).toMatchObject({ signal: 'SIGTERM' });
    expect(performance.now() - began).toBeLessThan(SHORTLY);
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(await inRedis(key)).toEqual([]);
  }, 90_000);

  test('comes once, however often the application is closed, and calls onClosed although disconnecting failed', async () => {
    const steps: string[] = [];
    const $disconnect = async () => {
      steps.push('disconnect');
      throw new Error('no connection');
    };
    const client = { $disconnect, $locks: { close: async () => {} } } as never;
    const module = new FencedLockModule({ client, onClosed: () => steps.push('closed') });
    await expect(module.onApplicationShutdown()).rejects.toThrow('no connection');
    await expect(module.onApplicationShutdown()).rejects.toThrow('no connection');
    expect(steps).toEqual(['disconnect', 'closed']);
  });
});
