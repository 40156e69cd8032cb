import { createRequire } from 'node:module';
import { SpanStatusCode, trace } from '@opentelemetry/api';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, expect, test } from 'vitest';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, gate, Shop, STAYS } from '../../support/shop.js';
import { Spans } from './recorded-spans.js';

describeWithShop('the spans of pg, beside those of a lock', () => {
  const shop = new Shop();
  const telemetry = new Spans();
  // The comments are put into the texts of statements, which the lock reads and sends.
  const pg = new PgInstrumentation({
    addSqlCommenterCommentToQueries: true,
    responseHook: (span, { data }) => {
      const { rowCount } = (data ?? {}) as { rowCount?: number };
      if (rowCount != null) span.setAttribute('test.rows', rowCount);
    },
  });
  pg.setTracerProvider(trace.getTracerProvider());
  // It patches pg when pg is required the next time.
  createRequire(import.meta.url)('pg');
  afterAll(() => pg.disable());
  afterAll(instrumentFencedLock({ meter: false, keyOnSpans: true }));

  /** The trace of the call of this key. Prisma ends its transaction, in which BEGIN was sent, behind the call. */
  const ended = (key: string) =>
    eventually('all spans of the call have ended', async () => {
      const tree = telemetry.trace(({ attributes }) => String(attributes['fenced_lock.keys'] ?? '') === key);
      const ids = new Set(tree.spans.map((span) => span.spanContext().spanId));
      const isWhole = tree.spans.every(
        (span) => span === tree.root || ids.has(span.parentSpanContext?.spanId as string),
      );
      return isWhole && tree.spans.some(({ name }) => name === 'prisma:client:transaction') && tree;
    });
  const named = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name.startsWith(name));

  test('the statements of the function are inside the work, COMMIT is inside the commit, BEGIN inside the call', async () => {
    const { id, key } = await shop.product(3);
    const { prisma } = shop.client();
    await prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 2 } });
      await tx.$queryRaw`VALUES (41 + 1)`;
    });
    const tree = await ended(key);
    for (const [what, outer] of [
      ['pg.query:UPDATE', tree.one('work')],
      ['pg.query:VALUES', tree.one('work')],
      ['pg.query:COMMIT', tree.one('commit')],
      ['pg.query:BEGIN', tree.root],
      ['pg.connect', tree.root],
    ] as const) {
      const found = named(tree.spans, what);
      expect([what, found.length > 0, found.every((span) => tree.isInside(span, outer))]).toEqual([what, true, true]);
    }
    // A tracer gets the result of a statement of the work.
    expect(named(tree.spans, 'pg.query:UPDATE').map(({ attributes }) => attributes['test.rows'])).toEqual([1]);
    // One flight: BEGIN and the admission. The text has no value, and so no key.
    const [begin] = named(tree.spans, 'pg.query:BEGIN');
    expect(begin?.attributes['db.statement']).toMatch(/^BEGIN; .*fenced_lock/s);
    expect(JSON.stringify(begin?.attributes)).not.toContain(key);
    expect((await shop.row(id))?.quantity).toBe(2);
  });

  test('every span that pg begins is ended, also of a COMMIT that begins the next turn, and of one that fails', async () => {
    const open = new Set<string>();
    const ended: ReadableSpan[] = [];
    const spanProcessor: SpanProcessor = {
      onStart: (span) => void open.add(span.spanContext().spanId),
      onEnd: (span) => {
        open.delete(span.spanContext().spanId);
        ended.push(span);
      },
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    pg.setTracerProvider(new BasicTracerProvider({ spanProcessors: [spanProcessor] }));
    const { key } = await shop.product(3);
    const { prisma } = shop.client(STAYS);
    const [inside, goOn] = [gate(), gate()];
    const first = prisma.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    // COMMIT itself fails by a constraint that is looked at then.
    const failing = prisma.$withLock(key, async (tx) => {
      await tx.$executeRaw`CREATE TEMPORARY TABLE twice (a int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP`;
      await tx.$executeRaw`INSERT INTO twice VALUES (1), (1)`;
    });
    goOn.open();
    await first;
    await expect(failing).rejects.toThrow();
    await eventually('all have ended', async () => open.size === 0 || undefined);
    const chained = ended.filter(({ attributes }) => /^COMMIT; BEGIN; /.test(String(attributes['db.statement'])));
    expect(chained.map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET]);
    expect(ended.findLast(({ name }) => name.includes('COMMIT'))?.status).toEqual({
      code: SpanStatusCode.ERROR,
      message: expect.stringContaining('twice'),
    });
  });
});
