import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';
import * as errors from '../../src/base/errors.js';

const cause = new Error('beneath');
/** An error of each class. */
const made = (of: typeof errors): Array<[errors.FencedLockErrorCode, errors.FencedLockError]> => [
  ['LOCK_TIMEOUT', new of.LockTimeoutError('stock:1', '10 ms', cause)],
  ['LOCK_LOST', new of.LockLostError('stock:1', 'gone', cause)],
  ['STALE_TOKEN', new of.StaleTokenError('stock:1', 7n, 'Stock')],
  ['LOCK_UNAVAILABLE', new of.LockUnavailableError('stock:1', cause)],
  ['COMMIT_UNKNOWN', new of.CommitUnknownError('stock:1', '42', cause)],
  ['TRANSACTION_ABORTED', new of.TransactionAbortedError('stock:1', 'timeout', 'it failed', cause)],
  ['HOOK_FAILED', new of.HookFailedError('stock:1', 'sold', [cause])],
  ['INSIDE_TRANSACTION', new of.InsideTransactionError('it would leave', { key: 'stock:1', cause })],
  ['OUTSIDE_LOCK', new of.OutsideLockError('it was called outside', { key: 'stock:1', cause })],
  ['REENTRY', new of.ReentryError('stock:1')],
  ['NESTED', new of.NestedError('stock:1', 'stock:2')],
  ['NOT_INSTALLED', new of.NotInstalledError(cause)],
  ['INVALID_OPTION', new of.InvalidOptionError('key', 'must not be empty.')],
  ['CLOSED', new of.ClosedError('it has ended', { key: 'stock:1' })],
];

describe('every error', () => {
  test('keeps its own name in a minified bundle, which renames the classes', async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('../../src/base/errors.ts', import.meta.url))],
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'node',
    });
    const bundled = `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`;
    const minified = made((await import(bundled)) as typeof errors).map(([, error]) => error);
    expect(minified.map((error) => error.constructor.name)).not.toContain('LockTimeoutError');
    expect(minified.map(({ name }) => name)).toEqual(made(errors).map(([, error]) => error.constructor.name));
  });

  test('of a class that the user has derived has the name of that class', () => {
    class ShopIsBusy extends errors.LockTimeoutError {}
    expect(new ShopIsBusy('stock:1', '10 ms')).toMatchObject({ name: 'ShopIsBusy', code: 'LOCK_TIMEOUT' });
  });

  test.each([
    ['connect ECONNREFUSED 127.0.0.1:5432', true],
    ["Can't reach database server at localhost:5432", true],
    ['connect ECONNREFUSED 10.0.0.7:5432', false],
  ])(
    'of a Postgres that is away (%s) asks for the connection string where the address is the default one',
    (why, asks) => {
      const { message } = new errors.LockUnavailableError('stock:1', new Error(why), { server: 'Postgres' });
      expect(message.includes('is `DATABASE_URL` loaded')).toBe(asks);
      expect(new errors.LockUnavailableError('stock:1', new Error(why)).message).not.toContain('DATABASE_URL');
    },
  );

  test('shows a key escaped, and cut to a line, and keeps it whole beside the message', () => {
    const key = `stock:\n${'"'.repeat(500)}`;
    const error = new errors.LockTimeoutError(key, '10 ms');
    expect(error.message).not.toContain('\n');
    expect(error.message.length).toBeLessThan(400);
    expect(error.key).toBe(key);
  });
});
