import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { memoryStore } from '../../../src/lease/stores/memory.js';
import { MemoryLeases } from '../../../src/lease/stores/memory-leases.js';
import { PREFIX, someKey } from '../actors.js';
import { claimOf, type StoreActor } from '../claims.js';
import { describeOrder } from '../order-contract.js';
import { describeStore } from '../store-contract.js';

function actorsOf(memory = memoryStore()): () => StoreActor {
  return () => {
    const store = memory.connect(PREFIX);
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
});
