import 'reflect-metadata';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Global, Module, type OnApplicationShutdown } from '@nestjs/common';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { inContext, listening, Stop } from './shop.js';

/**
 * From the begin of the end to its end, in the process that ends; ms. A third of a second where nothing else runs. Nobody who
 * waits for a lock would have it before 10 seconds, or give up sooner; Node keeps a connection for 5.
 */
const SHORTLY = 4_000;

describeWithShop('the end of an application of Nest', () => {
  const shop = new Shop();
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);

  test('turns waiting requests away, lets the work that runs commit, gives leases back and disconnects', async () => {
    const { id, key } = await shop.product(10);
    const elsewhere = await shop.product(10);
    const name = `nest-${key.split(':')[2]}`;
    // Its connections would not end by themselves.
    const { prisma } = shop.client({ pool: { application_name: name, idleTimeoutMillis: 0 } });
    const stop = new Stop();
    const steps: unknown[] = [];
    const onClosed = () => steps.push('closed');
    const { app, get, post } = await listening(shop, { lock: { client: prisma, onClosed }, stop });
    const other = await shop.client().prisma.$lock(elsewhere.key);
    const mine = await prisma.$lock(`${key} handle`);
    const works = post(`stop/${id}`, { key });
    await stop.inside.opened;
    const waits = [post(`sell/${id}`, { key }), post(`sell/${elsewhere.id}`, { key: elsewhere.key })];
    const queue = `fenced-lock:{${elsewhere.key}}:queue`;
    await eventually('one waits', async () => (await shop.redis().llen(queue)) === 1);
    const began = performance.now();
    const closed = app.close().then(() => steps.push('ended'));
    for (const response of await Promise.all(waits)) {
      expect([response.status, await response.json()]).toEqual([503, expect.objectContaining({ code: 'CLOSED' })]);
    }
    expect(steps).toEqual([]);
    // Nest has not closed it yet: it does when the work has ended.
    expect(app.getHttpServer().listening).toBe(true);
    expect((await get('slow/1')).headers.get('connection')).toBe('close');
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
    await using _holder = await shop.client().prisma.$lock(key);
    const closed = app.close();
    await slow.inside.opened;
    const response = await post(`sell/${id}`, { key });
    expect([response.status, await response.json()]).toEqual([503, expect.objectContaining({ code: 'CLOSED' })]);
    slow.goOn.open();
    await closed;
  });

  test.each([
    ['its server has closed', listening],
    ['it has no server', inContext],
  ])('leaves a lock to what other modules do at the very end, where %s', async (_, start) => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    const flushed: string[] = [];
    @Module({})
    class Flush implements OnApplicationShutdown {
      async onApplicationShutdown(): Promise<void> {
        await using lock = await prisma.$lock(key);
        // Longer than until locks are closed again while requests can come.
        await sleep(500);
        flushed.push(await lock.$transaction(() => 'flushed'));
      }
    }
    const { app } = await start(shop, { lock: { client: prisma }, imports: [Flush] });
    await app.close();
    expect(flushed).toEqual(['flushed']);
  });

  test('waits for no client that keeps its connection, idle or busy, and cuts no answer off', async () => {
    const { id, key } = await shop.product(1_000_000);
    const { prisma } = shop.client();
    const { app } = await listening(shop, { lock: { client: prisma } });
    const url = await app.getUrl();
    const pauses = [0, 10, 20_000];
    const sellers = pauses.map((pause) => new KeepAlive('POST', `${url}/sell/${id}`, pause, { key }));
    const others = pauses.map((pause) => new KeepAlive('GET', `${url}/slow/50`, pause));
    await eventually('all are answered', async () =>
      [...sellers, ...others].every(({ statuses }) => statuses.has(200)),
    );
    const arrived = new Promise<void>((resolve) => {
      app.getHttpServer().on('request', ({ url }: { url: string }) => {
        if (url === '/slow/700') resolve();
      });
    });
    const late = new KeepAlive('GET', `${url}/slow/700`, 20_000);
    await arrived;
    const began = performance.now();
    await app.close();
    expect(performance.now() - began).toBeLessThan(SHORTLY);
    await eventually('the late one is answered', async () => late.statuses.has(200));
    for (const client of [...sellers, ...others, late]) {
      await client.stop();
      expect([...client.statuses.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    }
    const sold = sellers.reduce((sum, { statuses }) => sum + (statuses.get(200) ?? 0), 0);
    expect((await shop.row(id))?.quantity).toBe(1_000_000 - sold);
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

  test('comes once, however often the application is closed, and calls onClosed although disconnecting failed', async () => {
    const { prisma } = shop.client();
    const failing = Object.create(prisma, { $disconnect: { value: () => Promise.reject(new Error('no connection')) } });
    let closed = 0;
    const { app } = await inContext(shop, { lock: { client: failing, onClosed: () => closed++ } });
    await expect(app.close()).rejects.toThrow('no connection');
    await app.close().catch(() => {});
    expect(closed).toBe(1);
  });
});

/** Sends one request after the other on one connection, with a pause between them, until one has no answer. */
class KeepAlive {
  /** How often each status was answered. */
  readonly statuses = new Map<number, number>();
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #over = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(method: 'GET' | 'POST', url: string, pause: number, body?: object) {
    const ask = () => this.#ask(method, url, JSON.stringify(body));
    const loop = async () => {
      for (;;) {
        const status = await ask();
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
        await sleep(pause, undefined, { signal: this.#over.signal });
      }
    };
    this.#ended = loop().catch(() => {});
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#ended;
    this.#agent.destroy();
  }

  #ask(method: string, url: string, body = ''): Promise<number> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const asked = request(url, { method, agent: this.#agent, headers }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      asked.once('error', reject).end(body);
    });
  }
}
