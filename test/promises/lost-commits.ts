import { expect } from 'vitest';
import { type LockOptions, TransactionAbortedError } from '../../src/index.js';
import { FACES, type Face } from '../support/faces.js';
import type { FaultProxy } from '../support/fault-proxy.js';
import { proxyTo } from '../support/proxied.js';
import type { Shop } from '../support/shop.js';

type Outcome = 'committed' | 'aborted';
type Loss = readonly [lose: (proxy: FaultProxy) => unknown, outcome: Outcome, options?: LockOptions];

/** How the answer to COMMIT is lost, and what became of the transaction. */
export const LOST_COMMITS: Readonly<Record<string, Loss>> = {
  'a connection cut before COMMIT arrived': [(proxy) => proxy.cutBeforeCommit(), 'aborted'],
  'a connection cut after COMMIT was done': [(proxy) => proxy.cutAfterCommit(), 'committed'],
  'a COMMIT that is never answered': [(proxy) => proxy.holdCommitReply(), 'committed', { timeout: 500 }],
  'a COMMIT that never arrives, on a connection that stays open': [
    (proxy) => proxy.onData('toServer', (_, seen) => (seen.commit ? 'hold' : 'forward')),
    'aborted',
    // Postgres ends an idle transaction at about the lease time, and the outcome must be known before that.
    { timeout: 500, leaseTime: 60_000 },
  ],
};

/** The caller is told what became of its work. */
export async function expectTold(
  shop: Shop,
  [lose, outcome, options]: Loss,
  url: string,
  rescue = url,
  face: Face = FACES['Prisma 7'],
): Promise<void> {
  const { id, key } = await shop.product(10);
  const proxy = await proxyTo(url);
  const { locks, write, events } = face(shop, { rescue, pool: { connectionString: proxy.url(url) } });
  shop.closeLater(() => proxy.close());
  void lose(proxy);
  const told: unknown[] = [];
  const sold = locks.withLock(
    key,
    async (tx, lock) => {
      lock.afterCommit(() => told.push('committed'));
      lock.afterRollback(() => told.push('aborted'));
      await write(tx, id, 9);
      return 'sold';
    },
    options,
  );
  if (outcome === 'committed') expect(await sold).toBe('sold');
  else await expect(sold).rejects.toBeInstanceOf(TransactionAbortedError);
  expect((await shop.row(id))?.quantity).toBe(outcome === 'committed' ? 9 : 10);
  expect(events).toContainEqual({ type: 'commit-resolved', key, outcome });
  expect(told).toEqual([outcome]);
}
