import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { isOfLock, rememberTransaction } from '../../src/base/lock-transactions.js';
import { processWide } from '../../src/base/process-wide.js';

test('an interactive transaction is one of a lock until it ends, and no other kind is', () => {
  // Another test of this process may have used a Prisma that tells no id, which is remembered until the process ends.
  const ids = processWide('transactions', () => new Set<unknown>());
  if (ids.delete(undefined)) onTestFinished(() => void ids.add(undefined));
  const id = randomUUID();
  expect(isOfLock('itx', id)).toBe(false);
  const forget = rememberTransaction(id);
  expect([isOfLock('itx', id), isOfLock('itx', randomUUID())]).toEqual([true, false]);
  expect([isOfLock('batch', id), isOfLock(undefined, id)]).toEqual([false, false]);
  forget();
  expect(isOfLock('itx', id)).toBe(false);
});
