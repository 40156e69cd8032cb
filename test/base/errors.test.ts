import { describe, expect, test } from 'vitest';
import * as errors from '../../src/base/errors.js';

const cause = new Error('beneath');
const MADE: ReadonlyArray<[errors.FencedLockErrorCode, errors.FencedLockError]> = [
  ['LOCK_TIMEOUT', new errors.LockTimeoutError('stock:1', '10 ms', cause)],
  ['LOCK_LOST', new errors.LockLostError('stock:1', 'gone', cause)],
  ['STALE_TOKEN', new errors.StaleTokenError('stock:1', 7n, 'Stock')],
  ['LOCK_UNAVAILABLE', new errors.LockUnavailableError('stock:1', cause)],
  ['COMMIT_UNKNOWN', new errors.CommitUnknownError('stock:1', '42', cause)],
  ['TRANSACTION_ABORTED', new errors.TransactionAbortedError('stock:1', 'timeout', 'it failed', cause)],
  ['HOOK_FAILED', new errors.HookFailedError('stock:1', 'sold', [cause])],
  ['INSIDE_TRANSACTION', new errors.InsideTransactionError('it would leave', { key: 'stock:1', cause })],
  ['NOT_INSTALLED', new errors.NotInstalledError(cause)],
  ['INVALID_OPTION', new errors.InvalidOptionError('key', 'must not be empty.')],
  ['CLOSED', new errors.ClosedError('it has ended', { key: 'stock:1' })],
];

describe('every error', () => {
  test.each(MADE)('%s is a FencedLockError with its code, its own name, its key and its cause', (code, error) => {
    expect(error).toBeInstanceOf(errors.FencedLockError);
    expect(error).toBeInstanceOf(Error);
    expect(error.code).toBe(code);
    expect(error.name).toBe(error.constructor.name);
    expect(error.message).toContain(`docs/errors.md#${code.toLowerCase()}`);
    expect([undefined, 'stock:1']).toContain(error.key);
    expect([undefined, cause]).toContain(error.cause);
  });

  test('shows a key escaped, and cut to a line, and keeps it whole beside the message', () => {
    const key = `stock:\n${'"'.repeat(500)}`;
    const error = new errors.LockTimeoutError(key, '10 ms');
    expect(error.message).not.toContain('\n');
    expect(error.message.length).toBeLessThan(400);
    expect(error.key).toBe(key);
  });
});
