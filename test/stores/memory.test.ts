import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { memoryStore } from '../../src/stores/memory.js';
import { PREFIX, someKey } from '../waiting/actors.js';
import { claimOf, type MakeActor } from '../waiting/claims.js';
import { describeOrder } from '../waiting/order-contract.js';
import { describePermits } from '../waiting/permits-contract.js';
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
  describePermits('memory', actorsOf());

  test('clients of another prefix, or of another store, are no contenders', async () => {
    const memory = memoryStore();
    const claim = claimOf(someKey());
    await memory.connect('app:').acquire(claim);
    for (const store of [memory.connect('other:'), memoryStore().connect('app:')]) {
      expect(await store.list()).toEqual([]);
      expect(await store.acquire(claimOf(claim.key))).toMatchObject({ taken: true });
    }
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
    watch.close();
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
});
