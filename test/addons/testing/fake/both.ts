import { vi } from 'vitest';
import { FencedLockError } from '../../../../src/index.js';

/** Mocks of what the functions of these tests use. */
export function mocks() {
  const row = { id: 1, quantity: 10 };
  const model = () => ({
    findMany: vi.fn(async () => [row]),
    findUnique: vi.fn(() => row),
    count: vi.fn(() => 1),
    create: vi.fn(async () => row),
    createMany: vi.fn(async () => ({ count: 1 })),
    update: vi.fn(async () => row),
    updateMany: vi.fn(() => ({ count: 1 })),
    delete: vi.fn(async () => row),
    upsert: vi.fn(async () => row),
  });
  const client = {
    stock: model(),
    order: { ...model(), create: vi.fn(() => Object.assign(Promise.resolve(row), { stock: async () => row })) },
    $executeRaw: vi.fn(async () => 1),
    $executeRawUnsafe: vi.fn(async () => 1),
    $queryRaw: vi.fn(async () => [row]),
    $queryRawUnsafe: vi.fn(async () => [row]),
    $transaction: vi.fn(
      async (of: Array<Promise<unknown>> | ((tx: object) => Promise<unknown>)): Promise<unknown> =>
        Array.isArray(of) ? await Promise.all(of) : await of(client),
    ),
  };
  return client;
}

/** How a promise has settled, as far as its caller can tell. */
export async function outcomeOf(promise: Promise<unknown>) {
  try {
    await promise;
    return 'resolved';
  } catch (error) {
    if (!(error instanceof FencedLockError)) throw error;
    return { type: error.constructor.name, code: error.code, key: error.key, message: error.message };
  }
}

/** How a promise has settled, without what differs from call to call, such as the numbers of tokens. */
export async function toldBy(promise: Promise<unknown>) {
  try {
    return { value: await promise };
  } catch (error) {
    const { code, name, message, ...known } = error as FencedLockError & { readonly [detail: string]: unknown };
    if (!(error instanceof FencedLockError)) return `${name}: ${message}`;
    const detail = known['reason'] ?? known['option'];
    return detail === undefined ? code : `${code} ${detail}`;
  }
}
