import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore } from '../../src/stores/memory.js';
import { MemoryLeases } from '../../src/stores/memory-leases.js';
import { PREFIX, someKey } from '../waiting/actors.js';
import { claimOf, type MakeActor } from '../waiting/claims.js';
import { describeOrder } from '../waiting/order-contract.js';
import { describeStore } from '../waiting/store-contract.js';

function actorsOf(memory = memoryStore()): MakeActor {
  return (name) => {
    const store = memory.connect(PREFIX, name);
    onTestFinished(() => store.close());
    return { store, kill: () => store.close(), forget: async () => memory.flush() };
  };
}

describe('a memory store', () => {
  describeStore('memory', actorsOf());
  describeOrder('memory', actorsOf());

  test('clients of another prefix, or of another store, are no contenders', async () => {
    const memory = memoryStore();
    const claim = claimOf(someKey());
    await memory.connect('app:').acquire(claim);
    for (const store of [memory.connect('other:'), memoryStore().connect('app:')]) {
      expect(await store.list()).toEqual([]);
      expect(await store.acquire(claimOf(claim.key))).toMatchObject({ taken: true });
    }
  });

  test('a prefix and a key are told apart, however their ends are cut', async () => {
    const memory = memoryStore();
    await memory.connect('a').acquire(claimOf('bc'));
    expect(await memory.connect('ab').acquire(claimOf('c'))).toMatchObject({ taken: true });
  });

  test('flush loses leases and places, and the next renewal says so', async () => {
    const memory = memoryStore();
    const store = memory.connect(PREFIX);
    const claim = claimOf(someKey());
    await store.acquire(claim);
    await store.acquire(claimOf(claim.key), { enter: 60_000 });
    memory.flush();
    expect(await store.list()).toEqual([]);
    expect(await store.extend([claim])).toEqual(['gone']);
  });

  test('a waiter is woken outside of the async context of the one that releases', async () => {
    const memory = memoryStore();
    const [holder, contender] = [memory.connect(PREFIX), memory.connect(PREFIX)];
    const claim = claimOf(someKey());
    await holder.acquire(claim);
    const context = new AsyncLocalStorage<string>();
    const woken = new Promise((resolve) => {
      void contender.watch(claim.key, () => resolve(context.getStore()));
    });
    await context.run('of the holder', () => holder.release(claim));
    expect(await woken).toBeUndefined();
  });

  test('leases that nobody gave back are not kept', () => {
    const leases = new MemoryLeases();
    leases.put('held', 'holder', 60_000);
    for (let index = 0; index < 10_000; index++) leases.put(`ended ${index}`, 'holder', 0);
    expect(leases.keys().length).toBeLessThan(1_100);
    expect(leases.holderOf('held')).toBe('holder');
  });

  test('a taken key says whose it is, and a key that is taken says whether somebody waits for it', async () => {
    const store = memoryStore().connect(PREFIX);
    const [holder, contender] = [claimOf(someKey()), claimOf('')];
    expect(await store.acquire(holder)).toEqual({ taken: true, contended: false });
    const refused = await store.acquire({ ...contender, key: holder.key }, { enter: 60_000 });
    expect(refused).toMatchObject({ taken: false, holder: holder.holder });
    expect(await store.acquire(holder)).toEqual({ taken: true, contended: true });
  });

  test('a key that is had by a client without a name tells of no process', async () => {
    const memory = memoryStore();
    for (const [name, process] of [
      [undefined, {}],
      ['web-1', { process: 'web-1' }],
    ] as const) {
      const claim = claimOf(someKey());
      await memory.connect(PREFIX, name).acquire(claim);
      const state = { key: claim.key, holder: claim.holder, expiresIn: expect.any(Number), waiting: 0, ...process };
      expect(await memory.connect(PREFIX).inspect(claim.key)).toStrictEqual(state);
    }
  });

  test('keys whose lease has ended are not listed', async () => {
    const store = memoryStore().connect(PREFIX);
    await store.acquire({ ...claimOf(someKey()), leaseTime: 0 });
    expect(await store.list()).toEqual([]);
  });

  test('nobody is told by a quiet release, or by a hint that nobody waits for', async () => {
    const store = memoryStore().connect(PREFIX);
    const claim = claimOf(someKey());
    const told: unknown[] = [];
    const watch = await store.watch(claim.key, (wakeUp) => told.push(wakeUp));
    await store.acquire(claim);
    await store.hint?.(claim);
    await store.release(claim, true);
    await setImmediate();
    expect(told).toEqual([]);
    await store.acquire(claim);
    await store.release(claim);
    await setImmediate();
    expect(told).toEqual(['look']);
    expect(watch.hears).toBe(true);
    await watch.close();
    expect(watch.hears).toBe(false);
    expect(store.onReturn(() => {})).toBeTypeOf('function');
  });

  test('who watches two keys and leaves one is told of the other, and no more of that one', async () => {
    const memory = memoryStore();
    const [store, other] = [memory.connect(PREFIX), memory.connect(PREFIX)];
    const keys = [someKey(), someKey()] as const;
    const told: string[] = [];
    const watches = await Promise.all(keys.map((key) => store.watch(key, () => told.push(key))));
    const release = async (key: string) => {
      const claim = { ...claimOf(''), key };
      await other.acquire(claim);
      await other.release(claim);
    };
    const late = release(keys[0]);
    await watches[0]?.close();
    await late;
    await release(keys[1]);
    await setImmediate();
    expect(told).toEqual([keys[1]]);
  });

  test('a watch that is closed while a message is on its way does not hear it', async () => {
    const memory = memoryStore();
    const [holder, contender] = [memory.connect(PREFIX), memory.connect(PREFIX)];
    const claim = claimOf(someKey());
    await holder.acquire(claim);
    const heard: string[] = [];
    const closed = await contender.watch(claim.key, () => heard.push('closed'));
    await contender.watch(claim.key, () => heard.push('open'));
    const released = holder.release(claim);
    closed.close();
    await released;
    await setImmediate();
    expect(heard).toEqual(['open']);
  });

  test('a client that watches nothing any more is not kept by the leases', async () => {
    const told = vi.spyOn(MemoryLeases.prototype, 'tell');
    onTestFinished(() => told.mockRestore());
    const store = memoryStore().connect(PREFIX);
    const keys = [someKey(), someKey()];
    const watches = await Promise.all(keys.map((key) => store.watch(key, () => {})));
    // A release of a key that nobody has tells of it.
    await store.release(claimOf(someKey()));
    const { receivers } = told.mock.contexts[0] as MemoryLeases;
    watches[0]?.close();
    expect(receivers.size).toBe(1);
    watches[1]?.close();
    expect(receivers.size).toBe(0);
  });

  describe('what it has of a key', () => {
    const receiver = (hears = true) => ({ hears: () => hears, tell: vi.fn() });

    test('is nothing where nobody had it', () => {
      const leases = new MemoryLeases();
      expect([leases.leftOf('key'), leases.firstOf('key'), leases.waiting('key')]).toEqual([0, undefined, 0]);
    });

    test('stays for those who wait when its lease is given up, and is forgotten where nobody waits', () => {
      const leases = new MemoryLeases();
      leases.put('key', 'holder', 60_000);
      leases.enter('key', 'waiter', receiver(), 60_000);
      leases.free('key');
      expect([leases.holderOf('key'), leases.firstOf('key')]).toEqual([undefined, 'waiter']);
      leases.leave('key', 'waiter');
      leases.free('key');
      expect(leases.keys()).toEqual([]);
    });

    test('is kept for those who wait, however many leases of others have ended', () => {
      const leases = new MemoryLeases();
      leases.put('key', 'holder', 60_000);
      leases.enter('key', 'waiter', receiver(), 60_000);
      leases.free('key');
      for (let index = 0; index < 10_000; index++) leases.put(`ended ${index}`, 'holder', 0);
      expect(leases.firstOf('key')).toBe('waiter');
    });

    test('is a queue that ends with the longest wait of those who are in it, not of those who have left', async () => {
      const leases = new MemoryLeases();
      leases.enter('key', 'patient', receiver(), 60_000);
      leases.leave('key', 'patient');
      leases.enter('key', 'hasty', receiver(), 5);
      await sleep(20);
      expect(leases.waiting('key')).toBe(0);
    });

    test('goes to the one that asks if that is the first, without an offer, and quietly where nobody is to be told', () => {
      const leases = new MemoryLeases();
      const watching = receiver();
      leases.receivers.add(watching);
      leases.enter('key', 'first', receiver(false), 60_000);
      expect(leases.passOn('key', { own: 'first' })).toBe('first');
      expect(leases.holderOf('key')).toBeUndefined();
      leases.enter('key', 'second', watching, 60_000);
      expect(leases.passOn('key', { quietly: true })).toBe('second');
      expect(leases.holderOf('key')).toBe('second');
      expect(watching.tell).not.toHaveBeenCalled();
    });

    test('is whose process it is as long as the lease, and no longer', () => {
      const leases = new MemoryLeases();
      expect(leases.nameOf('key')).toBeUndefined();
      leases.put('key', 'holder', 60_000, 'web-1');
      expect(leases.nameOf('key')).toBe('web-1');
      leases.put('key', 'holder', 0, 'web-1');
      expect(leases.nameOf('key')).toBeUndefined();
    });

    test('is not kept after its lease, also beside many that are held', () => {
      const leases = new MemoryLeases();
      for (let index = 0; index < 2_000; index++) leases.put(`held ${index}`, 'holder', 60_000);
      for (let index = 0; index < 10_000; index++) leases.put(`ended ${index}`, 'holder', 0);
      expect(leases.keys().length).toBeLessThan(5_000);
    });
  });
});
