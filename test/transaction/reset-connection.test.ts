import { expect, test } from 'vitest';
import { LockLostError, TransactionAbortedError } from '../../src/base/errors.js';
import { fromOvertaking } from '../../src/transaction/overtaken.js';

/** The leases of a call whose connection has failed. The look of this number finds them gone. */
function leases(goneAt = Number.POSITIVE_INFINITY) {
  let looks = 0;
  const held = {
    key: 'stock:1',
    loss: undefined as LockLostError | undefined,
    look: async () => {
      looks++;
      if (looks === goneAt) held.loss = new LockLostError('stock:1', 'gone');
    },
  };
  return { held, looks: () => looks };
}

const closed = Object.assign(new Error('Connection terminated unexpectedly'), { code: 'P1017' });
const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

const explain = (error: unknown, { held }: ReturnType<typeof leases>) =>
  fromOvertaking(error, { database: { isDisconnect: () => true, sqlState: () => undefined }, leases: held } as never);

test.each([
  ['closed', closed],
  ['reset', reset],
])('a connection that was %s by an operator, who has the lease a moment later, is told as that', async (_, error) => {
  expect(await explain(error, leases(2))).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', cause: error });
});

test('a connection that was reset does not keep the key from others as long as one that was closed', async () => {
  const after = { closed: leases(), reset: leases() };
  const aborted = new TransactionAbortedError('stock:1', 'connection', 'the connection failed at COMMIT.', reset);
  // Beside each other: a machine that is slow is slow for both.
  expect(await Promise.all([explain(aborted, after.reset), explain(closed, after.closed)])).toEqual([aborted, closed]);
  expect(after.reset.looks()).toBeLessThan(after.closed.looks());
});
