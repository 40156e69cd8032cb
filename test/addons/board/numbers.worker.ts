// A process of a shop that does what it is told, counts its locks by OpenTelemetry, and can serve the board.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { createBoard, toNodeListener } from '../../../src/addons/board/index.js';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../generated/prisma/client.js';
import { Metrics } from '../otel/recorded-metrics.js';

/** What the process counts of one key. */
export interface Counted {
  readonly held: number;
  readonly waiting: number;
  /** Leases that it got. */
  readonly leases: number;
  /** Of those, the ones whose transaction has committed; a handle counts when it is given back. */
  readonly committed: number;
  readonly rolledBack: number;
  readonly notAdmitted: number;
  readonly timeouts: number;
  readonly staleWrites: number;
  readonly leasesLost: number;
}

export type Order =
  | { readonly type: 'sell'; readonly key: string; readonly id: number; readonly times: number }
  | { readonly type: 'hold'; readonly key: string; readonly leaseTime: number }
  | { readonly type: 'handle'; readonly key: string }
  | { readonly type: 'queue'; readonly key: string; readonly callers: number }
  | { readonly type: 'give-up'; readonly key: string }
  | { readonly type: 'write-late'; readonly key: string; readonly other: string; readonly id: number }
  | { readonly type: 'board' }
  | { readonly type: 'count'; readonly keys: readonly string[] };

const [postgres, redisUrl, keyPrefix, name] = process.argv.slice(2) as [string, string, string, string];
const metrics = new Metrics();
// A key is its own group: each is counted alone.
instrumentFencedLock({ tracer: false, meter: metrics.meter, group: (key) => key });
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) }).$extends(
  fencedLock({ redis: new Redis(redisUrl), keyPrefix, name, defaults: { waitTime: 120_000 } }),
);

process.on('message', (order: Order) => {
  follow(order).then(
    (more) => process.send?.({ type: order.type, ...more }),
    (error: unknown) => process.send?.({ type: order.type, code: (error as { code?: string }).code ?? String(error) }),
  );
});
process.send?.({ type: 'ready' });

async function follow(order: Order): Promise<object> {
  switch (order.type) {
    case 'sell':
      await Promise.all(Array.from({ length: order.times }, () => prisma.$withLock(order.key, sale(order.id))));
      return {};
    case 'hold':
      await prisma.$withLock(
        order.key,
        async () => {
          process.send?.({ type: 'inside' });
          await new Promise(() => {});
        },
        { leaseTime: order.leaseTime, timeout: 120_000 },
      );
      return {};
    case 'handle':
      await prisma.$lock(order.key, { leaseTime: 120_000 });
      return {};
    case 'queue':
      await Promise.all(Array.from({ length: order.callers }, () => prisma.$withLock(order.key, () => {})));
      return {};
    case 'give-up':
      await prisma.$withLock(order.key, () => {}, { waitTime: 100 });
      return {};
    case 'write-late': {
      // The row is written under another key by a later token, which is the one that stands.
      await prisma.$withLock(order.key, async (tx) => {
        await prisma.$withLock(order.other, sale(order.id), { nested: 'allow' });
        await sale(order.id)(tx);
      });
      return {};
    }
    case 'board': {
      const server = createServer(toNodeListener(createBoard(prisma, { refreshInterval: 100 })));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    }
    case 'count':
      return { counted: Object.fromEntries(await Promise.all(order.keys.map(async (key) => [key, await count(key)]))) };
  }
}

type Tx = Pick<typeof prisma, 'stock'>;

function sale(id: number) {
  return async (tx: Tx) => {
    await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
  };
}

async function count(key: string): Promise<Counted> {
  const sum = (metric: string, more = {}) =>
    metrics.sum(`fenced_lock.${metric}`, { 'fenced_lock.group': key, ...more });
  return {
    held: await sum('keys.held'),
    waiting: await sum('callers.waiting'),
    leases: await sum('turns'),
    committed: await sum('hold.duration', { 'fenced_lock.outcome': 'committed' }),
    rolledBack: await sum('hold.duration', { 'fenced_lock.outcome': 'rolled-back' }),
    notAdmitted: await sum('hold.duration', { 'fenced_lock.outcome': 'not-admitted' }),
    timeouts: await sum('timeouts'),
    staleWrites: await sum('stale_writes'),
    leasesLost: await sum('leases.lost'),
  };
}
