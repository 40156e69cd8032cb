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
  const endless = { toJSON: (): unknown => ({ again: endless, at: {} }) };
  let deep: unknown = 1n;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  const strange = new Error('strange');
  Object.assign(strange, { message: strange, code: 5n });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const getter = {
    get secret(): never {
      throw new Error('not for you');
    },
  };
  const failing = {
    toJSON(): never {
      throw new Error('not for you');
    },
  };

  test.each<[string, unknown, unknown]>([
    ['a value that contains itself', circular, { self: ['[circular]'] }],
    ['a value whose JSON contains it', endless, { again: '[circular]', at: {} }],
    ['a getter that throws', { getter }, { getter: '[not readable]' }],
    ['a toJSON that throws', { failing }, { failing: '[not readable]' }],
    ['a revoked Proxy', [proxy], ['[not readable]']],
    ['an error whose message is the error', strange, { name: 'Error', code: '5' }],
  ])('does not throw because of %s', (_, value, shown) => {
    expect(hookFailed(value, [value])).toMatchObject({ value: shown, errors: [shown] });
  });
});
