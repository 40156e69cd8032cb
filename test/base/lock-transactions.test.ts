import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { isOfLock, rememberTransaction } from '../../src/base/lock-transactions.js';

test('an interactive transaction is one of a lock until it ends, and no other kind is', () => {
  const id = randomUUID();
  expect(isOfLock('itx', id)).toBe(false);
  const forget = rememberTransaction(id);
  expect([isOfLock('itx', id), isOfLock('itx', randomUUID())]).toEqual([true, false]);
  expect([isOfLock('batch', id), isOfLock(undefined, id)]).toEqual([false, false]);
  forget();
  expect(isOfLock('itx', id)).toBe(false);
});
