import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { LockTimeoutError, type LockTx } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { listen } from '../support/heard.js';
import { atWork, describeWithShop, Shop, type ShopClient, STAYS } from '../support/shop.js';

describeWithShop('the tracing channels', () => {
  const shop = new Shop();
  const heard = listen();

  const read = (id: number) => (tx: LockTx<ShopClient>) => tx.stock.findUniqueOrThrow({ where: { id } });

  /** The key's row, as Postgres keeps it. */
  async function row(key: string) {
    const { rows } = await shop.admin.query(
      'SELECT token, turns, attempts::text[] FROM fenced_lock.admission WHERE key = $1',
      [key],
    );
    return rows[0] as { token: string; turns: string; attempts: string[] };
  }

  test('a call is published part by part, with what Postgres has of it', async () => {
    const { id, key } = await shop.product(1);
    const { prisma } = shop.client();
    const token = await prisma.$withLock(key, async (tx, lock) => {
      await read(id)(tx);
      return lock.token;
    });
    await eventually('it is released', async () => heard.order(key).includes('hold:asyncEnd'));
    expect(heard.order(key)).toEqual([
      'lock:start',
      'wait:start',
      'wait:asyncEnd',
      'hold:start',
      'transaction:start',
      'admission:start',
      'admission:asyncEnd',
      'work:start',
      'work:asyncEnd',
      'commit:start',
      'commit:asyncEnd',
      'transaction:asyncEnd',
      'hold:asyncEnd',
      'lock:asyncEnd',
    ]);
    const [call] = heard.messages(key, 'fenced-lock:lock');
    expect(call).toMatchObject({ operation: '$withLock', keys: [key], waitTime: 10_000, token, outcome: 'committed' });
    const [transaction] = heard.messages(key, 'fenced-lock:transaction');
    const { token: last, turns, attempts } = await row(key);
    expect(transaction).toMatchObject({ call, tokens: [BigInt(last)], turn: BigInt(turns), outcome: 'committed' });
    expect(attempts).toEqual([transaction?.attempt]);
    expect(transaction?.duration).toBeGreaterThan(0);
    expect(heard.messages(key, 'fenced-lock:wait')).toMatchObject([{ call, via: ['free'] }]);
  });

  test('a call that waits in vain fails in its wait; of `$tryWithLock` that is no error', async () => {
    const { key } = await shop.product(1);
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    await using _handle = await holder.$lock(key);
    await expect(contender.$withLock(key, () => {}, { waitTime: 20 })).rejects.toThrow(LockTimeoutError);
    expect(await contender.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    expect(heard.messages(key, 'fenced-lock:lock')).toMatchObject([
      { operation: '$lock', outcome: 'committed' },
      { operation: '$withLock', outcome: 'not-admitted', error: expect.any(LockTimeoutError) },
      { operation: '$tryWithLock', outcome: 'not-admitted' },
    ]);
    expect(heard.messages(key, 'fenced-lock:lock')[2]?.error).toBeUndefined();
    expect(heard.messages(key, 'fenced-lock:wait')[1]?.error).toBeInstanceOf(LockTimeoutError);
  });

  test('each turn says how it came by the lease: alone, with COMMIT, with the lease, and from another process', async () => {
    const { key } = await shop.product(1);
    const [one, other] = [shop.client(STAYS).prisma, shop.client().prisma];
    const first = await atWork(one, key);
    // Options of its own keep the second out of the flight of the first, but not from its lease.
    const local = [one.$withLock(key, () => {}), one.$withLock([key, `${key}:b`], () => {})];
    const remote = other.$withLock(key, () => {});
    await shop.queued(key);
    first.goOn();
    await Promise.all([first.held, ...local, remote]);
    const via = heard.messages(key, 'fenced-lock:hold').map((hold) => hold.via[0]);
    expect(via.toSorted()).toEqual(['commit', 'free', 'lease', 'redis']);
    const chained = heard.messages(key, 'fenced-lock:commit').filter((commit) => commit.chained);
    expect(chained).toHaveLength(1);
  });

  test('a store that is bound to the start of the work is there in the function', async () => {
    const { id, key } = await shop.product(1);
    const storage = new AsyncLocalStorage<bigint | undefined>();
    const { start } = tracingChannel<unknown, { call: { token?: bigint } }>('fenced-lock:work') as unknown as {
      start: {
        bindStore(store: typeof storage, from: (message: { call: { token?: bigint } }) => bigint | undefined): void;
        unbindStore(store: typeof storage): void;
      };
    };
    start.bindStore(storage, ({ call }) => call.token);
    try {
      const inside = await shop.client().prisma.$withLock(key, async (tx, lock) => {
        await read(id)(tx);
        return { found: storage.getStore(), token: lock.token };
      });
      expect(inside.found).toBe(inside.token);
    } finally {
      start.unbindStore(storage);
    }
  });
});
