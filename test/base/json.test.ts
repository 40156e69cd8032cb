import { describe, expect, test } from 'vitest';
import * as errors from '../../src/base/errors.js';

const stale = new errors.StaleTokenError('stock:1', 7n, 'Stock', {
  fence: 9n,
  where: { id: 9007199254740993n, AND: [{ fence: 1n }] },
  cause: Object.assign(new Error('refused'), { code: 'FL001', host: 'db.internal' }),
});

function jsonOf(error: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(error)) as Record<string, unknown>;
}

function hookFailed(value: unknown, thrown: readonly unknown[] = [new Error('mail')]): Record<string, unknown> {
  return jsonOf(new errors.HookFailedError('stock:1', value, thrown));
}

describe('JSON.stringify of an error', () => {
  test('has its name, code, key, message and fields, bigints as text, and of the cause no more than says what it is', () => {
    expect(jsonOf(stale)).toEqual({
      name: 'StaleTokenError',
      code: 'STALE_TOKEN',
      key: 'stock:1',
      message: stale.message,
      cause: { name: 'Error', message: 'refused', code: 'FL001' },
      reason: 'other-key',
      token: '7',
      fence: '9',
      model: 'Stock',
      where: { id: '9007199254740993', AND: [{ fence: '1' }] },
      ofHandle: false,
    });
    expect(Object.keys(jsonOf(stale)).slice(0, 4)).toEqual(['name', 'code', 'key', 'message']);
  });

  test('has the fields of a subclass, and of a cause that is no error its message only', () => {
    class OutOfStock extends errors.FencedLockError {
      readonly left = 5n;
    }
    const error = new OutOfStock('CLOSED', 'sold', { cause: { message: 'by somebody', password: 'p' } });
    expect(jsonOf(error)).toMatchObject({ name: 'OutOfStock', left: '5' });
    expect(jsonOf(error)['cause']).toEqual({ message: 'by somebody' });
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = [circular];
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const refuses = (): never => {
    throw new Error('not for you');
  };

  test.each<[string, unknown]>([
    ['a value that contains itself', circular],
    ['a getter that throws', Object.defineProperty({}, 'secret', { enumerable: true, get: refuses })],
    ['a toJSON that throws', { toJSON: refuses }],
    ['a revoked Proxy', proxy],
  ])('does not throw because of %s', (_, value) => {
    expect(hookFailed(value)).toMatchObject({ value: '[not readable]', errors: [{ name: 'Error', message: 'mail' }] });
    expect(hookFailed(1, [value])).toMatchObject({ value: 1, code: 'HOOK_FAILED' });
  });
});
