import { afterEach, describe, expect, test, vi } from 'vitest';
import { type AnyClient, type FakeLocks, fakeLocks } from '../../../../src/addons/testing/index.js';
import * as errors from '../../../../src/index.js';
import { Prisma } from '../../../generated/prisma/client.js';
import { untilHolds } from '../../../support/eventually.js';
import { gate } from '../../../support/shop.js';

/** A row that is read and written in two steps, as by a database that takes its time. */
function shelf(quantity: number) {
  const row = { quantity };
  const stock = {
    findFirst: vi.fn(async () => ({ ...row })),
    update: vi.fn(async (next: number) => {
      row.quantity = next;
    }),
  };
  return { row, client: { stock } };
}

const sellOne = (prisma: AnyClient, key = 'stock:1') =>
  prisma.$withLock(key, async (tx, { token }) => {
    const { quantity } = await tx['stock'].findFirst();
    await tx['stock'].update(quantity - 1);
    return token;
  });

const codeOf = (promise: Promise<unknown>) => promise.catch((error: errors.FencedLockError) => error.code);

afterEach(() => {
  vi.useRealTimers();
});

describe('calls', () => {
  test('of one key are serial, first come, first served, with rising tokens', async () => {
    const { row, client } = shelf(20);
    const { prisma } = fakeLocks(client);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => sellOne(prisma)));
    expect(row.quantity).toBe(0);
    expect(tokens).toEqual(Array.from({ length: 20 }, (_, index) => BigInt(index + 1)));
  });

  test('that do not wait are told that the key is taken, or that the script says so', async () => {
    const locks = fakeLocks();
    const tried = () => locks.prisma.$tryWithLock('k', () => 'mine');
    const other = await locks.hold('k');
    expect(await tried()).toEqual({ acquired: false });
    other.release();
    expect(await tried()).toEqual({ acquired: true, value: 'mine' });
    locks.next('k').timesOut();
    expect(await tried()).toEqual({ acquired: false });
    expect(locks.calls.map(({ outcome }) => outcome)).toEqual(['not acquired', 'committed', 'not acquired']);
  });

  test('inside one of the same key join it, and inside one of another key are refused', async () => {
    const { prisma } = fakeLocks();
    const tokens = await prisma.$withLock('k', async (_, outer) => {
      const inner = await prisma.$withLock('k', (_tx, { token }) => token);
      return [outer.token, inner];
    });
    expect(tokens).toEqual([1n, 1n]);
    expect(await codeOf(prisma.$withLock('k', () => prisma.$withLock('l', () => {})))).toBe('NESTED');
    const throwing = prisma.$withLock('k', () => prisma.$withLock('k', () => {}, { reentry: 'throw' }));
    expect(await codeOf(throwing)).toBe('REENTRY');
    const swallowed = prisma.$withLock('k', () => prisma.$withLock('k', () => Promise.reject(1)).catch(() => {}));
    expect(await codeOf(swallowed)).toBe('TRANSACTION_ABORTED');
  });

  test.each<[option: string, call: () => unknown]>([
    ['prisma', () => fakeLocks(null as never)],
    ['redis', () => fakeLocks({}, { redis: {} } as never)],
    ['waitTime', () => fakeLocks({}, { defaults: { waitTime: -1 } })],
    ['key', () => fakeLocks().prisma.$withLock('stock:undefined', () => {})],
    ['waitTime', () => fakeLocks().prisma.$withLock('k', () => {}, { waitTime: -1 })],
  ])('with a bad key or option are refused as by the real locks: %s', async (option, call) => {
    await expect((async () => await call())()).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
  });
});

test('the client of the transaction is without what leaves the transaction, and closed at the end', async () => {
  const { client } = shelf(1);
  const { prisma } = fakeLocks(client);
  const kept = await prisma.$withLock('k', async (tx) => {
    expect(await tx['stock'].findFirst()).toEqual({ quantity: 1 });
    expect(() => tx['$transaction']()).toThrow(errors.InsideTransactionError);
    return tx;
  });
  expect(await codeOf(kept['stock'].findFirst())).toBe('CLOSED');
  expect(client.stock.findFirst).toHaveBeenCalledTimes(1);
});

describe('the script', () => {
  test('that says nothing of a call is told by that call, with the place', async () => {
    const locks = fakeLocks();
    locks.next('k');
    const message = expect.stringContaining('write, for example, `locks.next("k").timesOut()');
    const error = { option: 'next', message, stack: expect.stringContaining('fake-locks.test.ts') };
    await expect(locks.prisma.$lock('k')).rejects.toMatchObject(error);
    expect(locks.calls).toMatchObject([{ outcome: 'not acquired', error }]);
    expect(locks.unused).toBe(0);
  });

  test('is for the key that it names, or for whichever comes next, and is forgotten by reset', async () => {
    const locks = fakeLocks();
    const next = locks.next('b');
    next.timesOut();
    next.isUnavailable();
    locks.next().isRolledBack();
    expect(await codeOf(locks.prisma.$withLock('a', () => {}))).toBe('TRANSACTION_ABORTED');
    expect(await codeOf(locks.prisma.$withLock('b', () => {}))).toBe('LOCK_TIMEOUT');
    expect(locks.unused).toBe(1);
    locks.reset();
    await locks.prisma.$withLock('b', () => {});
  });

  test.each([
    ['timesOut', 'LOCK_TIMEOUT', 'not acquired'],
    ['isUnavailable', 'LOCK_UNAVAILABLE', 'not acquired'],
    ['isLost', 'LOCK_LOST', 'rolled back'],
    ['isStale', 'STALE_TOKEN', 'rolled back'],
    ['hasUnknownOutcome', 'COMMIT_UNKNOWN', 'unknown'],
    ['isRolledBack', 'TRANSACTION_ABORTED', 'rolled back'],
  ] as const)(
    '%s rejects with %s, names the key that the test has named, and runs the hook of its outcome',
    async (what, code, outcome) => {
      const locks = fakeLocks();
      locks.next('seat:2')[what]();
      const ran: string[] = [];
      const call = locks.prisma.$withLock(['seat:1', 'seat:2'], (_, lock) => {
        lock.afterCommit(() => ran.push('committed'));
        lock.afterRollback(() => ran.push('rolled back'));
        lock.onUnknown(() => ran.push('unknown'));
      });
      const key = what === 'hasUnknownOutcome' ? 'seat:1' : 'seat:2';
      await expect(call).rejects.toMatchObject({ code, key });
      expect(locks.calls).toMatchObject([{ keys: ['seat:1', 'seat:2'], outcome, error: { code } }]);
      expect(ran).toEqual(outcome === 'not acquired' ? [] : [outcome]);
    },
  );

  test('loses the lease after the second operation: the signal aborts, the third is refused, and the key is free', async () => {
    const { client } = shelf(5);
    const locks = fakeLocks(client);
    locks.next().isLost({ after: 2 });
    const seen: unknown[] = [];
    const call = locks.prisma.$withLock('k', async (tx, { signal }) => {
      await tx['stock'].findFirst();
      seen.push(signal.aborted);
      await tx['stock'].update(4);
      seen.push(signal.aborted, await codeOf(tx['stock'].update(3)));
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'gone' });
    await untilHolds(() => expect(seen).toEqual([false, true, 'LOCK_LOST']));
    expect(client.stock.update).toHaveBeenCalledTimes(1);
    expect(await locks.prisma.$withLock('k', () => 'next')).toBe('next');
  });

  test('is stale in the model that the test says, or in that of the refused write', async () => {
    const orderLine = { create: async () => {} };
    const locks = fakeLocks({ orderLine, $executeRaw: async () => 1 });
    const modelOf = async (work: (tx: Record<string, AnyClient>) => unknown, model?: string) => {
      locks.next().isStale({ reason: 'other-key', ...(model && { model }) });
      const error: unknown = await locks.prisma.$withLock('k', work as never).catch((error: unknown) => error);
      return (
        error instanceof errors.StaleTokenError && error.message.includes(`A row of ${error.model} `) && error.model
      );
    };
    expect(await modelOf((tx) => tx['orderLine']?.['create']())).toBe('OrderLine');
    expect(await modelOf((tx) => tx['orderLine']?.['create'](), 'order_line')).toBe('order_line');
    // No write of a model.
    expect(await modelOf((tx) => (tx as unknown as AnyClient)['$executeRaw']``)).toBe('Model');
    expect(await modelOf(() => {})).toBe('Model');
  });

  test.each<[string, (tx: Record<string, AnyClient['$queryRaw']>) => Promise<unknown>]>([
    ['of a model', (tx) => tx['stock'].update()],
    ['by raw SQL', (tx) => tx['$queryRaw']`UPDATE "Stock" SET quantity = 0 RETURNING id`],
    ['by raw SQL of Prisma', (tx) => tx['$queryRaw'](Prisma.sql`DELETE FROM "Stock" RETURNING id`)],
    ['by raw SQL that is a text', (tx) => tx['$queryRawUnsafe']('DELETE FROM "Stock" RETURNING id')],
  ])('is stale at its first write, %s, and not before, also if the function swallows that', async (_, write) => {
    const stock = { createdSince: async () => 3, update: vi.fn() };
    const locks = fakeLocks({ stock, $queryRaw: async () => [5], $queryRawUnsafe: async () => [6] });
    locks.next().isStale();
    const seen: unknown[] = [];
    const call = locks.prisma.$withLock('k', async (tx) => {
      seen.push(await tx['stock'].createdSince(), await tx['$queryRaw']`SELECT 'UPDATE'`, await codeOf(write(tx)));
    });
    await expect(call).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded' });
    expect(seen).toEqual([3, [5], 'STALE_TOKEN']);
    expect(stock.update).not.toHaveBeenCalled();
  });

  test('rejects with an error of the test', async () => {
    const locks = fakeLocks();
    const error = new Error('mine');
    locks.next().rejects(error);
    await expect(locks.prisma.$withLock('k', () => {})).rejects.toBe(error);
  });
});

describe('once in each interval', () => {
  const DAY = 86_400_000;

  test('it runs, by a clock that fake timers move; a run that was rolled back does not count', async () => {
    vi.useFakeTimers({ now: 10 * DAY + 1_000 });
    const locks = fakeLocks();
    const { prisma } = locks;
    await expect(prisma.$oncePer('nightly', DAY, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await prisma.$oncePer('nightly', DAY, () => 7)).toEqual({ ran: true, value: 7 });
    const next = { ran: false, next: new Date(11 * DAY), nextIn: DAY - 1_000, busy: false };
    expect(await prisma.$oncePer('nightly', DAY, () => 8)).toEqual(next);
    vi.setSystemTime(11 * DAY);
    expect(await prisma.$oncePer('nightly', DAY, () => 9)).toEqual({ ran: true, value: 9 });
    locks.reset();
    expect(await prisma.$oncePer('nightly', DAY, () => 10)).toEqual({ ran: true, value: 10 });
  });
});

describe('what a test sees', () => {
  test('is which keys were asked for, in which order, what was waited for, and what became of it', async () => {
    const locks = fakeLocks();
    const other = await locks.hold('b');
    const first = locks.prisma.$withLock('a', () => {});
    const second = locks.prisma.$withLock('b', () => {});
    const third = locks.prisma.$withLock('b', () => Promise.reject(new Error('no')), { waitTime: 60_000 });
    await locks.waiting('b', 2);
    other.release();
    await Promise.allSettled([first, second, third]);
    expect(locks.calls).toMatchObject([
      { method: '$withLock', keys: ['a'], waitedFor: [], token: 1n, outcome: 'committed' },
      { method: '$withLock', keys: ['b'], waitedFor: ['b'], token: 2n, outcome: 'committed' },
      { method: '$withLock', keys: ['b'], waitedFor: ['b'], token: 3n, outcome: 'rolled back', error: new Error('no') },
    ]);
    locks.reset();
    expect(locks.calls).toEqual([]);
  });

  test('is a lease that is lost in the middle', async () => {
    const locks = fakeLocks();
    const inside = gate();
    const call = locks.prisma.$withLock('k', async (_, { signal }) => {
      inside.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    await inside.opened;
    expect(locks.lose('k')).toBe(true);
    await expect(call).rejects.toBeInstanceOf(errors.LockLostError);
    expect(locks.lose('k')).toBe(false);
  });

  test('is why nobody waits: nobody has the key, or too few have come', async () => {
    vi.useFakeTimers();
    const locks = fakeLocks();
    await locks.hold('held');
    const call = locks.prisma.$withLock('held', () => {}).catch(() => {});
    const [free, few] = await Promise.allSettled([locks.waiting('free'), locks.waiting('held', 2)]);
    expect(free).toMatchObject({
      reason: { message: expect.stringMatching(/^0 of 1 .*"free".*locks\.hold\("free"\)/) },
    });
    expect(few).toMatchObject({ reason: { message: expect.stringMatching(/^1 of 2 .*"held".*without an await/) } });
    await locks.prisma['$disconnect']();
    await call;
  });
});

describe('time', () => {
  // Longer than this process has run, so that the clock of the process cannot stand for the fake one.
  test.each<[string, number, (action: () => Promise<unknown>) => Promise<unknown>]>([
    ['real timers', 50, (action) => action()],
    [
      'fake timers',
      3_600_000,
      async (action) => {
        vi.useFakeTimers();
        const done = action();
        done.catch(() => {});
        await vi.advanceTimersByTimeAsync(3_600_000);
        return await done;
      },
    ],
  ])('ends a wait by %s', async (_, waitTime, run) => {
    const locks = fakeLocks();
    const other = await locks.hold('k');
    await expect(run(() => locks.prisma.$withLock('k', () => {}, { waitTime }))).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      message: expect.stringContaining(`${waitTime} ms`),
    });
    other.release();
    expect(await locks.prisma.$withLock('k', () => 'next')).toBe('next');
  });

  test('that stands still holds up no call that need not wait for it', async () => {
    vi.useFakeTimers();
    const { row, client } = shelf(10);
    const { prisma } = fakeLocks(client);
    await Promise.all(Array.from({ length: 10 }, () => sellOne(prisma)));
    expect([row.quantity, vi.getTimerCount()]).toEqual([0, 0]);
  });

  test('ends work that takes too long, and a signal ends it at once', async () => {
    vi.useFakeTimers();
    const { prisma } = fakeLocks();
    const slow = codeOf(prisma.$withLock('k', () => new Promise(() => {}), { timeout: 1_000 }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await slow).toBe('TRANSACTION_ABORTED');
    const abort = new AbortController();
    const cut = prisma.$withLock('k', () => new Promise(() => {}), { signal: abort.signal });
    const waits = prisma.$withLock('k', () => {}, { signal: abort.signal });
    abort.abort('closing time');
    expect(await Promise.allSettled([cut, waits])).toEqual([
      { status: 'rejected', reason: 'closing time' },
      { status: 'rejected', reason: 'closing time' },
    ]);
  });
});

describe('a handle', () => {
  test('keeps the key until it is released, over several transactions of one token', async () => {
    const locks = fakeLocks();
    const handle = await locks.prisma.$lock('k');
    const tokens = [1, 2].map(() => handle.$transaction((_, { token }) => token));
    expect(await Promise.all(tokens)).toEqual([handle.token, handle.token]);
    const waits = locks.prisma.$withLock('k', () => 'next');
    await locks.waiting('k');
    expect(locks.calls[0]?.outcome).toBe('held');
    await handle.release();
    expect(locks.calls[0]?.outcome).toBe('released');
    expect(await waits).toBe('next');
    expect(await codeOf(handle.$transaction(() => {}))).toBe('CLOSED');
    expect(locks.calls.map(({ method }) => method)).toEqual(['$lock', '$transaction', '$transaction', '$withLock']);
  });

  test('that is resumed loses to the new one', async () => {
    const locks = fakeLocks();
    const handle = await locks.prisma.$lock('k');
    const resumed = await locks.prisma['$resumeLock'](JSON.parse(JSON.stringify(handle)));
    expect(resumed.token).toBe(handle.token);
    expect(await codeOf(handle.$transaction(() => {}))).toBe('LOCK_LOST');
    expect(await resumed.$transaction(() => 'mine')).toBe('mine');
    await resumed.release();
    expect(await locks.prisma['$locks'].list()).toEqual([]);
    expect(locks.calls.map(({ method, outcome }) => [method, outcome])).toEqual([
      ['$lock', 'lost'],
      ['$resumeLock', 'released'],
      ['$transaction', 'committed'],
    ]);
  });

  test.each<[string, (locks: FakeLocks<AnyClient>) => unknown]>([
    ['lose', (locks) => locks.lose('k')],
    ['forceRelease', (locks) => locks.prisma['$locks'].forceRelease('k')],
  ])('whose lease was lost by %s is a call with that outcome, also when it is released', async (_, lose) => {
    const locks = fakeLocks();
    const handle = await locks.prisma.$lock('k');
    await lose(locks);
    expect(locks.calls).toMatchObject([{ outcome: 'lost', error: { code: 'LOCK_LOST', reason: 'gone' } }]);
    expect([handle.signal.aborted, handle.remaining()]).toEqual([true, 0]);
    expect(await codeOf(handle.$transaction(() => {}))).toBe('LOCK_LOST');
    await handle.release();
    expect(locks.calls[0]?.outcome).toBe('lost');
    await locks.prisma['$disconnect']();
  });

  test('has transactions that wait for each other, which the test sees', async () => {
    vi.useFakeTimers();
    const locks = fakeLocks();
    const handle = await locks.prisma.$lock('k');
    const goOn = gate();
    const works = handle.$transaction(() => goOn.opened);
    const late = codeOf(handle.$transaction(() => {}, { waitTime: 50 }));
    const waits = handle.$transaction(() => 'waited');
    expect(locks.calls.map(({ outcome }) => outcome)).toEqual(['held', 'waiting', 'waiting', 'waiting']);
    await vi.advanceTimersByTimeAsync(50);
    expect(await late).toBe('LOCK_TIMEOUT');
    goOn.open();
    expect(await Promise.all([works, waits])).toEqual([undefined, 'waited']);
    await handle.release();
    const outcomes = ['released', 'committed', 'not acquired', 'committed'];
    expect(locks.calls.map(({ outcome }) => outcome)).toEqual(outcomes);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('takes some models of the client that the test names, in any form, and no name that the client does not have', () => {
  type Model = { count(): Promise<number>; update(): Promise<number> };
  type Client = { readonly stock: Model; readonly order: Model; $withLock(key: string): void };
  class Mock {
    readonly stock = { count: 1 };
    readonly helper = 2;
  }
  fakeLocks<Client>({ stock: { count: async () => 4 }, $on: () => {}, $extends: undefined });
  fakeLocks<Client>(new Mock());
  fakeLocks<Client>({} as AnyClient);
  // @ts-expect-error: a slip of the pen
  fakeLocks<Client>({ stocks: { count: async () => 4 } });
  // Of no type.
  const { prisma }: FakeLocks<AnyClient> = fakeLocks({ whatever: 1 });
  expect(prisma['whatever']).toBe(1);
});

test('code under a lock that is not given tx finds it by the client, in a call and in a handle', async () => {
  const { prisma } = fakeLocks();
  await prisma.$withLock('stock:1', (tx, lock) => {
    expect(errors.currentTx(prisma)).toBe(tx);
    expect(errors.currentLock(prisma)).toBe(lock);
  });
  const handle = await prisma.$lock('stock:1');
  await handle.$transaction((tx) => expect(errors.currentTx(prisma)).toBe(tx));
  await handle.release();
});

describe('the end of a fake client', () => {
  test.each(['$locks.close', '$disconnect'])('%s turns waiters away, ends handles and awaits work', async (how) => {
    const locks = fakeLocks();
    const { prisma } = locks;
    const [inside, goOn] = [gate(), gate()];
    const works = prisma.$withLock('works', async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const elsewhere = await locks.hold('held');
    const waits = codeOf(prisma.$withLock('held', () => {}));
    await locks.waiting('held');
    const handle = await prisma.$lock('handle');
    let isClosed = false;
    const closed = (how === '$disconnect' ? prisma['$disconnect']() : prisma['$locks'].close()).then(() => {
      isClosed = true;
    });
    expect(await waits).toBe('CLOSED');
    expect(handle.signal.reason).toMatchObject({ code: 'CLOSED' });
    await new Promise(setImmediate);
    expect(isClosed).toBe(false);
    goOn.open();
    await Promise.all([works, closed]);
    elsewhere.release();
    expect(await prisma.$withLock('handle', () => 'anew')).toBe('anew');
  });

  test('is not waited for by forceRelease: work under the key is rejected, and the key is free', async () => {
    const { prisma } = fakeLocks();
    const inside = gate();
    const works = codeOf(
      prisma.$withLock('k', () => {
        inside.open();
        return new Promise(() => {});
      }),
    );
    await inside.opened;
    expect(await prisma['$locks'].forceRelease('k', { holder: 'another' })).toBe(false);
    expect(await prisma['$locks'].forceRelease('k')).toBe(true);
    expect(await works).toBe('TRANSACTION_ABORTED');
    expect(await prisma['$locks'].forceRelease('k')).toBe(false);
  });

  test('calls `$connect` and `$disconnect` of the mock, where it has them', async () => {
    const mock = { $connect: vi.fn(), $disconnect: vi.fn() };
    for (const { prisma } of [fakeLocks(mock), fakeLocks()]) {
      await prisma['$connect']();
      await prisma['$disconnect']();
    }
    expect([mock.$connect.mock.calls.length, mock.$disconnect.mock.calls.length]).toEqual([1, 1]);
  });
});

test('conflicts of one call use up its retries, and no call behind it has one', async () => {
  const locks = fakeLocks();
  let runs = 0;
  locks.next().conflicts({ times: 3 });
  const call = locks.prisma.$withLock('stock:1', () => ++runs, { retries: 2 });
  await expect(call).rejects.toBeInstanceOf(Prisma.PrismaClientKnownRequestError);
  await expect(call).rejects.toMatchObject({ code: 'P2034' });
  expect([runs, locks.unused]).toEqual([3, 0]);
  locks.next().conflicts({ times: 2 });
  expect(await locks.prisma.$withLock('stock:1', () => ++runs, { retries: 2 })).toBe(6);
  expect(await locks.prisma.$withLock('stock:1', () => ++runs)).toBe(7);
});

test('an operation that is in flight when the function returns is refused, as by the real locks', async () => {
  const slow = gate();
  const { prisma, calls } = fakeLocks({ stock: { count: async () => 1, update: () => slow.opened } });
  const forgotten = prisma.$withLock('stock:1', async (tx) => {
    void tx['stock'].update().then(() => {});
    return await tx['stock'].count();
  });
  await expect(forgotten).rejects.toMatchObject({
    code: 'TRANSACTION_ABORTED',
    message: expect.stringContaining('`stock.update` was still in flight'),
  });
  expect(calls.at(-1)?.outcome).toBe('rolled back');
  slow.open();
  await prisma.$withLock('stock:1', (tx) => Promise.all([tx['stock'].update(), tx['stock'].count()]));
});

test('mocks are seen through the client and through tx as the test made them', async () => {
  const create = vi.fn(async (id: number) => ({ id }));
  const { prisma } = fakeLocks({ stock: { create } });
  prisma['stock'].create.mockResolvedValueOnce({ id: 7 });
  expect(await prisma['stock'].create(1)).toEqual({ id: 7 });
  expect(prisma['stock'].create).toHaveBeenCalledWith(1);
  expect([Object.keys(prisma), Object.keys(prisma['stock'])]).toEqual([['stock'], ['create']]);
  const spy = vi.spyOn(prisma['stock'], 'create').mockResolvedValue({ id: 8 });
  expect(await prisma.$withLock('stock:1', (tx) => tx['stock'].create(2))).toEqual({ id: 8 });
  spy.mockRestore();
  expect(await prisma['stock'].create(3)).toEqual({ id: 3 });
});

describe('a mock', () => {
  class Stock {
    #quantity = 3;
    async count() {
      return this.#quantity;
    }
  }
  class Client {
    readonly #stock = new Stock();
    get stock() {
      return this.#stock;
    }
  }
  const strict = <T extends object>(of: T) =>
    new Proxy(of, {
      get(_, name) {
        if (typeof name === 'symbol' || name in of) return Reflect.get(of, name);
        throw new Error(`unexpected: ${name}`);
      },
    });
  const deep = (): object =>
    new Proxy(() => {}, {
      get: (_, name) => (typeof name === 'symbol' || name === 'then' ? undefined : deep()),
      apply: async () => 3,
    });

  test.each<[string, object]>([
    ['that is frozen', Object.freeze({ stock: { count: async () => 3 } })],
    ['of classes with private fields', new Client()],
    [
      'that is strict, and throws for each name that it does not have',
      strict({ stock: strict({ count: async () => 3 }) }),
    ],
    ['that is deep, and makes each function when it is read', deep()],
  ])('%s, can be used', async (_, mock) => {
    const { prisma } = fakeLocks(mock);
    expect(await prisma['stock'].count()).toBe(3);
    expect(await prisma.$withLock('k', (tx) => tx['stock'].count())).toBe(3);
  });

  const says = (path: string, given: string) => `has no ${path}: give fakeLocks(${given}) what the function works on.`;

  test.each<[string, string, (client: AnyClient) => unknown]>([
    ['$queryRaw', '{ $queryRaw: … }', (client) => client['$queryRaw']`SELECT 1`],
    ['order.create', '{ order: { create: … } }', (client) => client['order'].create({})],
    ['stock.create', '{ stock: { create: … } }', (client) => client['stock'].create({})],
  ])('without %s says so when it is called, and how to give it', async (path, given, call) => {
    const { prisma } = fakeLocks({ stock: { update: async () => {} } });
    expect(() => call(prisma)).toThrow(says(path, given));
    const locked = prisma.$withLock('k', (tx) => call(tx as AnyClient));
    await expect(locked).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(says(path, given)),
    });
  });

  test('without a model looks to others as if it were not there, and with one that is undefined, too', async () => {
    const { prisma } = fakeLocks({ stock: { update: async () => {} }, audit: undefined });
    await prisma.$withLock('k', async (tx) => {
      for (const client of [prisma, tx]) {
        expect(['order' in client, Object.keys(client)]).toEqual([false, ['stock', 'audit']]);
        for (const name of ['audit', 'then', '$extends', '$$typeof', '@@__IMMUTABLE_MAP__@@', '_isMockFunction']) {
          expect(client[name]).toBeUndefined();
        }
        expect(client['order']?.sellAll).toBeUndefined();
      }
    });
  });

  test('has properties that are no models, which are what the test gave', async () => {
    const settings = { pageSize: 20 };
    const { prisma } = fakeLocks({ settings, cache: new Map([['a', 1]]) });
    expect(prisma['settings']).toBe(settings);
    expect(await prisma.$withLock('k', (tx) => tx['cache'].get('a'))).toBe(1);
  });

  test('gives a relation of a fluent call, or says how to give it', async () => {
    const row = { id: 1 };
    const withOrders = () => Object.assign(Promise.resolve(row), { orders: async () => ['order'] });
    const orders = (findUnique: () => unknown) =>
      fakeLocks({ stock: { findUnique } }).prisma.$withLock('k', (tx) => tx['stock'].findUnique().orders());
    await expect(orders(async () => row)).rejects.toThrow(
      'Object.assign(Promise.resolve(row), { orders: async () => … })',
    );
    expect(await orders(withOrders)).toEqual(['order']);
  });
});

test('a write on the client, in the function of a lock, is refused; a lock in a plain `$transaction` of the mock, too', async () => {
  const update = vi.fn(async () => 1);
  const tx = { stock: { update } };
  const { prisma } = fakeLocks({ ...tx, $transaction: vi.fn((work: (tx: object) => unknown) => work(tx)) });
  expect(await codeOf(prisma.$withLock('k', () => prisma['stock'].update()))).toBe('INSIDE_TRANSACTION');
  expect(await codeOf(prisma.$withLock('k', (own) => void own['stock'].update()))).toBe('TRANSACTION_ABORTED');
  expect(update).not.toHaveBeenCalled();
  expect(await prisma['$transaction']((own: AnyClient) => own['stock'].update())).toBe(1);
  expect(prisma['$transaction']).toHaveBeenCalledTimes(1);
  for (const lock of [() => prisma.$withLock('k', () => {}), (own: AnyClient) => own.$withLock('k', () => {})]) {
    expect(await codeOf(prisma['$transaction'](async (own: AnyClient) => await lock(own)))).toBe('INSIDE_TRANSACTION');
  }
});

test('a spy of the test runner on a method sees the calls, and can be taken away', async () => {
  const { prisma, calls } = fakeLocks();
  const spy = vi.spyOn(prisma, '$withLock');
  expect(await prisma.$withLock('key', () => 'done')).toBe('done');
  expect(spy).toHaveBeenCalledWith('key', expect.any(Function));
  spy.mockRejectedValueOnce(new Error('of the test'));
  await expect(prisma.$withLock('key', () => 'done')).rejects.toThrow('of the test');
  spy.mockRestore();
  expect(await prisma.$withLock('key', () => 'done')).toBe('done');
  expect(spy).toHaveBeenCalledTimes(0);
  expect(calls).toHaveLength(2);
});

test('permits: as many at a time as there are, each call with its number, and the test sees who waits', async () => {
  const locks = fakeLocks();
  const { prisma } = locks;
  const ends = [gate(), gate()];
  const turns = ends.map(({ opened }) =>
    prisma.$withPermit('imports', { permits: 2 }, async (_, { permit }) => {
      await opened;
      return permit;
    }),
  );
  const handle = prisma.$permit('imports', { permits: 2 });
  await locks.waiting('imports');
  expect(await prisma.$tryWithPermit('imports', { permits: 2 }, () => {})).toEqual({ acquired: false });
  ends[1]?.open();
  expect((await handle).permit).toBe(1);
  await (await handle).release();
  ends[0]?.open();
  expect(await Promise.all(turns)).toEqual([0, 1]);
  expect(locks.calls.map(({ method, keys, outcome }) => [method, keys, outcome])).toEqual([
    ['$withPermit', ['imports'], 'committed'],
    ['$withPermit', ['imports'], 'committed'],
    ['$permit', ['imports'], 'released'],
    ['$tryWithPermit', ['imports'], 'not acquired'],
  ]);
});

test('a permit that is lost aborts its call', async () => {
  const locks = fakeLocks();
  const inside = gate();
  const lost = locks.prisma.$withPermit('imports', { permits: 1 }, async (_, { signal }) => {
    inside.open();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  await inside.opened;
  expect(locks.lose('imports')).toBe(true);
  expect(await codeOf(lost)).toBe('LOCK_LOST');
});
