import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterAll, expect, test } from 'vitest';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { LockTimeoutError } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, gate, Shop, STAYS } from '../../support/shop.js';
import { Spans, tracerTo } from './recorded-spans.js';

describeWithShop('the spans of a lock', () => {
  const shop = new Shop();
  const telemetry = new Spans();
  afterAll(instrumentFencedLock({ meter: false, keyOnSpans: true }));

  const of = (key: string) => (span: ReadableSpan) => {
    const keys = span.attributes['fenced_lock.keys'];
    return Array.isArray(keys) && (keys as unknown[]).includes(key);
  };
  const names = (spans: readonly ReadableSpan[]) => spans.map(({ name }) => name);

  test('a call is one span with its wait, admission, work and commit, and Prisma is inside the work', async () => {
    const { id, key } = await shop.product(1);
    const { prisma } = shop.client();
    const token = await prisma.$withLock(key, async (tx, lock) => {
      await tx.stock.findUniqueOrThrow({ where: { id } });
      trace.getTracer('application').startSpan('own').end();
      return lock.token;
    });
    const tree = telemetry.trace(of(key));
    // Behind an await, too.
    expect(names(tree.children(tree.one('work')))).toContain('own');
    expect(tree.root.name).toBe('lock stock');
    const own = tree.children(tree.root).filter(({ name }) => !name.startsWith('prisma:'));
    expect(names(own).toSorted()).toEqual(['admission', 'commit', 'wait', 'work']);
    expect(tree.root.attributes).toMatchObject({
      'fenced_lock.group': 'stock',
      'fenced_lock.operation': '$withLock',
      'fenced_lock.outcome': 'committed',
      'fenced_lock.token': String(token),
    });
    expect(tree.one('wait').attributes).toEqual({ 'fenced_lock.via': ['free'] });
    const operation = tree.one('prisma:client:operation');
    expect(tree.isInside(operation, tree.one('work'))).toBe(true);
    // Prisma's transaction is around the function, and ends behind the call, which COMMIT's answer settles.
    const late = await eventually('Prisma has ended it', async () => {
      const found = telemetry.trace(of(key));
      return found.spans.some(({ name }) => name === 'prisma:client:transaction') && found;
    });
    expect(late.isInside(late.one('prisma:client:transaction'), late.root)).toBe(true);
  });

  test('a call is inside the span that is active where it is made, also where it waits behind another one', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client(STAYS);
    const [inside, goOn] = [gate(), gate()];
    const tracer = trace.getTracer('application');
    const request = (name: string, run: () => Promise<unknown>) => {
      const span = tracer.startSpan(name);
      return context.with(trace.setSpan(context.active(), span), run).finally(() => span.end());
    };
    const first = request(`first ${key}`, () =>
      prisma.$withLock(key, async () => {
        inside.open();
        await goOn.opened;
      }),
    );
    await inside.opened;
    const second = request(`second ${key}`, () => prisma.$withLock(key, () => {}));
    goOn.open();
    await Promise.all([first, second]);
    for (const name of [`first ${key}`, `second ${key}`]) {
      const tree = telemetry.trace((span) => span.name === name);
      const [lock] = tree.children(tree.root);
      expect(lock?.name).toBe('lock stock');
      expect(names(tree.children(lock as ReadableSpan))).toEqual(expect.arrayContaining(['wait', 'work', 'commit']));
    }
    const chained = telemetry.trace((span) => span.name === `second ${key}`);
    expect(chained.one('wait').attributes).toEqual({ 'fenced_lock.via': ['commit'] });
  });

  test('what went wrong is the status of the call and of the part that failed', async () => {
    const { key } = await shop.product(1);
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    await using _handle = await holder.$lock(`${key}:held`);
    const late = contender.$withLock(`${key}:held`, () => {}, { waitTime: 20 });
    await expect(late).rejects.toThrow(LockTimeoutError);
    const isCall = (end: string) => (span: ReadableSpan) =>
      of(`${key}:${end}`)(span) && span.attributes['fenced_lock.operation'] === '$withLock';
    const timedOut = telemetry.trace(isCall('held'));
    for (const span of [timedOut.root, timedOut.one('wait')]) {
      expect(span.status.code).toBe(SpanStatusCode.ERROR);
      expect(span.attributes['error.type']).toBe('LOCK_TIMEOUT');
    }
    expect(timedOut.root.attributes['fenced_lock.outcome']).toBe('not-admitted');
  });

  test('"not now" of $tryWithLock is no error', async () => {
    const { key } = await shop.product(1);
    await using _handle = await shop.client().prisma.$lock(key);
    expect(await shop.client().prisma.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    const tried = telemetry.trace(
      (span) => of(key)(span) && span.attributes['fenced_lock.operation'] === '$tryWithLock',
    );
    for (const span of [tried.root, tried.one('wait')]) expect(span.status.code).toBe(SpanStatusCode.UNSET);
  });

  test('a transaction of a handle is a span of its own, and the registration of the handle is one', async () => {
    const { id, key } = await shop.product(1);
    const { prisma } = shop.client();
    const handle = await prisma.$lock(key);
    await handle.$transaction((tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    await handle.release();
    for (const operation of ['$lock', 'handle.$transaction']) {
      const tree = telemetry.trace((span) => of(key)(span) && span.attributes['fenced_lock.operation'] === operation);
      expect(names(tree.children(tree.root))).toEqual(expect.arrayContaining(['admission', 'work', 'commit']));
    }
  });

  test('without keyOnSpans no key is shown, not in an error of a lock either; after the end there are no spans', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const ended: ReadableSpan[] = [];
    const end = instrumentFencedLock({ tracer: tracerTo(ended), meter: false });
    await using _handle = await prisma.$lock(key);
    await expect(shop.client().prisma.$withLock(key, () => {}, { waitTime: 20 })).rejects.toThrow(LockTimeoutError);
    end();
    const root = ended.findLast(({ name }) => name === 'lock stock');
    expect(root?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'LOCK_TIMEOUT' });
    expect(root?.events).toHaveLength(1);
    const shown = ended.map(({ name, attributes, status, events }) => [name, attributes, status, events]);
    expect(JSON.stringify(shown)).not.toContain(key);
    await prisma.$withLock(`${key}:other`, () => {});
    expect(ended).toHaveLength(shown.length);
  });

  test('the work ends with the call where the function hangs past its timeout', async () => {
    const { key } = await shop.product(1);
    const hangs = shop.client().prisma.$withLock(key, () => new Promise(() => {}), { timeout: 200 });
    await expect(hangs).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(telemetry.trace(of(key)).one('work').attributes['error.type']).toBe('TRANSACTION_ABORTED');
  });

  class OutOfStock extends RangeError {}
  const withCode = (code: unknown) => Object.assign(new RangeError('x'), { code });
  const unreadable = Object.defineProperty(new Error(), 'message', {
    get: () => {
      throw new Error('of a getter');
    },
  });
  Object.defineProperty(unreadable, 'name', { value: 'toString' });
  test.each<[name: string, thrown: unknown, type: string, message: string]>([
    ['with a code of Prisma', withCode('P2002'), 'P2002', 'x'],
    ['with a code of Postgres', withCode('40001'), '40001', 'x'],
    // An application may put a row's id into its own.
    ['with another code', withCode('ORDER_4711'), 'RangeError', 'x'],
    ['with a number for its code', withCode(42), 'RangeError', 'x'],
    ['of a class', new OutOfStock('x'), 'OutOfStock', 'x'],
    ['without a class', new (class extends Error {})('x'), '_OTHER', 'x'],
    ['that is undefined', undefined, '_OTHER', 'undefined'],
    ['that cannot be read', unreadable, 'Error', 'a value without a text'],
  ])('an error %s has failed, and its type is one of few', async (_, thrown, type, message) => {
    const { key } = await shop.product(1);
    const call = shop.client().prisma.$withLock(key, () => Promise.reject(thrown));
    expect(await call.catch((error) => error === thrown)).toBe(true);
    const tree = telemetry.trace(of(key));
    for (const span of [tree.root, tree.one('work')]) {
      expect(span.status).toEqual({ code: SpanStatusCode.ERROR, message });
      expect(span.attributes['error.type']).toBe(type);
    }
    expect(tree.one('admission').status.code).toBe(SpanStatusCode.UNSET);
  });
});
