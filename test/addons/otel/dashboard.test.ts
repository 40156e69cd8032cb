import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { afterAll, expect, test } from 'vitest';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { publishEvent } from '../../../src/base/events.js';
import { describeWithShop, Shop } from '../../support/shop.js';

const DASHBOARD = JSON.parse(readFileSync('docs/grafana/fenced-lock.json', 'utf8'));
const QUERIES: string[] = DASHBOARD.panels
  .flatMap(({ targets = [] }) => targets)
  .map(({ expr }: { expr: string }) => expr)
  .concat(DASHBOARD.templating.list.map(({ definition = '' }) => definition).filter(Boolean));
/** The names of metrics in a query: as they stand, or as a pattern. */
const namesIn = (query: string) => [
  ...[...query.matchAll(/__name__=~"([^"]+)"/g)].map(([, name = '']) => name),
  ...[
    ...query.replaceAll(/\{[^}]*\}|\(le[^)]*\)|by \([^)]*\)|, fenced_lock_group\)/g, '').matchAll(/fenced_lock_\w+/g),
  ].map(([name]) => name),
];
const LABELS = QUERIES.flatMap((query) => [...query.matchAll(/\bfenced_lock_(?:group|via)\b/g)].map(([name]) => name));

describeWithShop('the dashboard for Grafana', () => {
  const shop = new Shop();
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  afterAll(instrumentFencedLock({ tracer: false, meter: meters.getMeter('test') }));
  afterAll(() => meters.shutdown());

  /** What Prometheus would be given. */
  const scraped = () =>
    new Promise<string>((resolve) => {
      const response = { setHeader() {}, end: resolve } as unknown as ServerResponse;
      exporter.getMetricsRequestHandler({} as IncomingMessage, response);
    });

  test('asks for nothing that a Prometheus exporter does not give', async () => {
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    const { key } = await shop.product(1);
    const handle = await holder.$lock(key);
    await contender.$withLock(key, () => {}, { waitTime: 10 }).catch(() => {});
    await handle.release();
    // Each of these takes a fault; test/addons/otel/metrics.test.ts has them.
    publishEvent({ type: 'lease-lost', key, error: undefined });
    publishEvent({ type: 'backend-ended', key, pid: 1 });
    publishEvent({ type: 'release-failed', key, error: undefined });
    publishEvent({ type: 'commit-resolved', key, outcome: 'unknown' });
    const text = await scraped();
    const given = new Set([...text.matchAll(/^(\w+)\{/gm)].map(([, name = '']) => name));
    // A counter that was never counted has its name in no output.
    given.add('fenced_lock_stale_writes_total');
    const asked = QUERIES.flatMap(namesIn);
    expect(asked.length).toBeGreaterThanOrEqual(QUERIES.length);
    for (const name of asked) {
      const pattern = new RegExp(`^(?:${name})$`);
      expect(
        [...given].some((each) => pattern.test(each)),
        name,
      ).toBe(true);
    }
    for (const label of LABELS) expect(text).toMatch(new RegExp(`[{,]${label}="`));
    // And shows all that there is.
    const shown = [...given].filter((name) => /^fenced_lock_(?!.*_(count|sum)$)/.test(name));
    for (const name of shown) {
      expect(
        asked.some((each) => new RegExp(`^(?:${each})$`).test(name)),
        name,
      ).toBe(true);
    }
  });
});
