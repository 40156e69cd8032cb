import { readFileSync } from 'node:fs';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { Redis } from 'ioredis';
import { afterAll, expect, inject, test } from 'vitest';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { publishEvent } from '../../../src/base/events.js';
import { LockTimeoutError, TransactionAbortedError } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { refusedWrite } from '../../support/refused-write.js';
import { describeWithShop, gate, Shop, STAYS } from '../../support/shop.js';
import { Metrics } from './recorded-metrics.js';

describeWithShop('the metrics of locks', () => {
  const shop = new Shop();
  const telemetry = new Metrics();
  // A group for each key: a test sees its own alone.
  const group = (key: string) => `of ${key}`;
  afterAll(instrumentFencedLock({ tracer: false, meter: telemetry.meter, group }));

  /** A key, and the metrics of it alone. */
  async function measured() {
    const { id, key } = await shop.product(9);
    const own = { 'fenced_lock.group': group(key) };
    const sum = (name: string, attributes = {}) => telemetry.sum(`fenced_lock.${name}`, { ...own, ...attributes });
    return { id, key, sum, own };
  }

  test('are not begun with an option that is not known', () => {
    const given = { keysOnSpans: true } as object;
    expect(() => instrumentFencedLock(given)).toThrow('`keysOnSpans` is not an option here');
  });

  test('who waits and what is held is counted while it lasts, and how long that was, in seconds', async () => {
    const { key, sum, own } = await measured();
    const { prisma } = shop.client();
    const handle = await prisma.$lock(key);
    const since = performance.now();
    const waiting = [prisma.$withLock(key, () => {}), shop.client().prisma.$withLock(key, () => {})];
    await eventually('both wait', async () => (await sum('callers.waiting')) === 2);
    expect(await sum('keys.held')).toBe(1);
    await handle.release();
    await Promise.all(waiting);
    const passed = (performance.now() - since) / 1_000;
    expect(await sum('callers.waiting')).toBe(0);
    await eventually('all is given back', async () => (await sum('keys.held')) === 0);
    expect(await sum('wait.duration')).toBe(3);
    expect(await sum('hold.duration', { 'fenced_lock.outcome': 'committed' })).toBe(3);
    expect(await telemetry.total('fenced_lock.wait.duration', own)).toBeLessThan(3 * passed);
  });

  test('turns are counted by how they came: alone, locally, and from another process', async () => {
    const { key, sum } = await measured();
    const [one, other] = [shop.client(STAYS).prisma, shop.client().prisma];
    const [inside, goOn] = [gate(), gate()];
    const first = one.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const more = [1, 2, 3].map(() => one.$withLock(key, () => {}));
    const remote = other.$withLock(key, () => {});
    await eventually('the other one waits', async () => {
      const { waiting } = await one.$locks.inspect(key);
      return waiting === 1;
    });
    goOn.open();
    await Promise.all([first, ...more, remote]);
    const via = (name: string) => sum('turns', { 'fenced_lock.via': name });
    expect(await Promise.all(['free', 'commit', 'redis'].map(via))).toEqual([1, 3, 1]);
    expect(await sum('turns')).toBe(5);
  });

  test('timeouts are counted, and "not now" of $tryWithLock is none', async () => {
    const { key, sum } = await measured();
    const contender = shop.client().prisma;
    await using _handle = await shop.client().prisma.$lock(key);
    const late = contender.$withLock(key, () => {}, { waitTime: 20 });
    await expect(late).rejects.toThrow(LockTimeoutError);
    expect(await contender.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    expect(await sum('timeouts')).toBe(1);
    expect(await sum('wait.duration', { 'error.type': 'LOCK_TIMEOUT' })).toBe(2);
  });

  test('leases that are lost, and backends that are ended for it, are counted', async () => {
    const { key, sum } = await measured();
    const [inside, goOn] = [gate(), gate()];
    const { prisma } = shop.client();
    const handle = await prisma.$lock(key);
    const working = handle.$transaction(async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const ended = expect(working).rejects.toThrow(TransactionAbortedError);
    await prisma.$locks.forceRelease(key);
    await ended;
    goOn.open();
    await handle.release();
    expect(await sum('leases.lost')).toBe(1);
    expect(await sum('backends.ended')).toBe(1);
  });

  test('releases that do not reach Redis are counted', async () => {
    const { key, sum } = await measured();
    const redis = new Redis(inject('redis').url as string, { enableOfflineQueue: false, lazyConnect: true });
    redis.on('error', () => {});
    await redis.connect();
    const { prisma } = shop.client({ redis });
    const handle = await prisma.$lock(key, { leaseTime: 1_000 });
    redis.disconnect();
    await handle.release();
    await eventually('its release has failed', async () => (await sum('releases.failed')) === 1);
  });

  test('outcomes that nobody can find out are counted, and those that were found are not', async () => {
    const { key, sum } = await measured();
    // To lose the evidence takes a crash of Postgres; test/faults does that.
    publishEvent({ type: 'commit-resolved', key, outcome: 'committed' });
    publishEvent({ type: 'commit-resolved', key, outcome: 'unknown' });
    expect(await sum('outcomes.unknown')).toBe(1);
  });

  test('no key is an attribute of any metric, one without a colon neither; a group that throws is `_OTHER`', async () => {
    const alone = new Metrics();
    const key = `${crypto.randomUUID()}`;
    const ends = [
      instrumentFencedLock({ tracer: false, meter: alone.meter }),
      instrumentFencedLock({
        tracer: false,
        meter: alone.meter,
        group: () => {
          throw new Error('a bad group');
        },
      }),
    ];
    const { prisma } = shop.client();
    await prisma.$withLock([key, `stock:${key}`], () => {});
    const handle = await prisma.$lock(`stock:${key}:open`);
    const seen = await alone.groups();
    expect(seen).toEqual(new Set(['stock', '_OTHER']));
    expect(await alone.sum('fenced_lock.keys.held', {})).toBe(2);
    for (const end of ends) end();
    // What is open then counts as ended.
    expect(await alone.sum('fenced_lock.keys.held', {})).toBe(0);
    await handle.release();
    const before = await alone.sum('fenced_lock.turns', {});
    await prisma.$withLock(key, () => {});
    expect(await alone.sum('fenced_lock.turns', {})).toBe(before);
  });

  test('the dashboard for Grafana asks for what a Prometheus exporter gives, and for all of it', async () => {
    const exporter = new PrometheusExporter({ preventServerStart: true });
    const meters = new MeterProvider({ readers: [exporter] });
    const end = instrumentFencedLock({ tracer: false, meter: meters.getMeter('test') });
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    const { id, key } = await shop.product(1);
    await refusedWrite(holder, contender, id, key);
    const handle = await holder.$lock(key);
    await contender.$withLock(key, () => {}, { waitTime: 10 }).catch(() => {});
    await handle.release();
    // Each of these takes a fault, as above.
    publishEvent({ type: 'lease-lost', key, error: undefined });
    publishEvent({ type: 'backend-ended', key, pid: 1 });
    publishEvent({ type: 'release-failed', key, error: undefined });
    publishEvent({ type: 'commit-resolved', key, outcome: 'unknown' });
    const scraped = await new Promise<string>((resolve) => {
      const response = { setHeader() {}, end: resolve };
      exporter.getMetricsRequestHandler({} as never, response as never);
    });
    end();
    await meters.shutdown();
    // Another exporter names the unit, too.
    const { panels, templating } = JSON.parse(readFileSync('docs/grafana/fenced-lock.json', 'utf8'));
    const dashboard = JSON.stringify([panels, templating]).replaceAll('(_seconds)?', '');
    const asked = new Set(dashboard.match(/fenced_lock_\w+/g));
    for (const label of ['fenced_lock_group', 'fenced_lock_via']) {
      expect([label, asked.delete(label), scraped.includes(`${label}="`)]).toEqual([label, true, true]);
    }
    const given = [...scraped.matchAll(/^(fenced_lock_\w+)\{/gm)].map(([, name = '']) => name.replace('_seconds', ''));
    expect(asked).toEqual(new Set(given.filter((name) => !/_(count|sum)$/.test(name))));
  });
});
