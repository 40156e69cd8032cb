import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ExpiringMap } from '../../src/stores/expiring-map.js';
import { memoryStore } from '../../src/stores/memory.js';
import { PREFIX, someKey } from '../waiting/actors.js';
import { claimOf, LONG } from '../waiting/claims.js';
import { clock } from '../waiting/stopped-clock.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { stopped } = await import('../waiting/stopped-clock.js');
  return stopped(await original());
});

describe('a value that ends', () => {
  test('is there up to the end of its time, and not any more from then on', () => {
    const values = new ExpiringMap<string>();
    expect([values.get('key'), values.left('key')]).toEqual([undefined, 0]);
    values.set('key', 'value', 100);
    clock.now += 99;
    expect([values.get('key'), values.left('key')]).toEqual(['value', 1]);
    clock.now += 1;
    expect([values.get('key'), values.left('key')]).toEqual([undefined, 0]);
    clock.now += 1;
    expect([values.get('key'), values.left('key')]).toEqual([undefined, 0]);
  });

  test('is not kept: there are never more than 1,024 beside one that lasts', () => {
    const values = new ExpiringMap<string>();
    values.set('lasts', 'value', LONG);
    let most = 0;
    for (let index = 0; index < 5_000; index++) {
      values.set(`ended ${index}`, 'value', 0);
      most = Math.max(most, [...values.keys()].length);
    }
    expect(most).toBe(1_024);
    expect(values.get('lasts')).toBe('value');
  });

  test('costs no look at all others each time, however many last', () => {
    const values = new ExpiringMap<string>();
    for (let index = 0; index < 3_000; index++) values.set(`lasts ${index}`, 'value', LONG);
    clock.reads = 0;
    for (let index = 0; index < 3_000; index++) values.set(`ended ${index}`, 'value', 0);
    // One for each, and those of the search when there are 4,096.
    expect(clock.reads).toBeLessThan(3 * 3_000);
  });
});

describe('in a memory store', () => {
  const connect = (name?: string) => memoryStore().connect(PREFIX, name);
  beforeEach(() => {
    // Not a whole millisecond, as the real one.
    clock.now += 0.25;
  });

  test('a contender that looks again when it was told to takes the key', async () => {
    const store = connect();
    const claim = claimOf(someKey(), 100);
    await store.acquire(claim);
    clock.now += 0.5;
    const contender = claimOf(claim.key);
    expect(await store.acquire(contender)).toMatchObject({ taken: false, expiresIn: 100 });
    clock.now += 99;
    expect(await store.acquire(contender)).toMatchObject({ taken: false, expiresIn: 1 });
    clock.now += 0.5;
    expect(await store.acquire(contender)).toMatchObject({ taken: true });
  });

  test('a place ends with the time that was asked for', async () => {
    const store = connect();
    const claim = claimOf(someKey());
    await store.acquire(claim);
    await store.acquire(claimOf(claim.key), { enter: 100 });
    clock.now += 99;
    expect(await store.inspect(claim.key)).toMatchObject({ waiting: 1 });
    clock.now += 1;
    expect(await store.inspect(claim.key)).toMatchObject({ waiting: 0 });
  });

  test('a process that gives up and has no lease passes a free key on to who waits', async () => {
    const memory = memoryStore();
    const [waiter, bystander] = [memory.connect(PREFIX), memory.connect(PREFIX)];
    const claim = claimOf(someKey());
    await bystander.acquire(claimOf(claim.key, 100));
    await waiter.watch(claim.key, () => {});
    expect(await waiter.acquire(claim, { enter: LONG })).toMatchObject({ taken: false });
    clock.now += 100;
    await bystander.release({ ...claim, holder: 'gave up' });
    expect(await bystander.inspect(claim.key)).toMatchObject({ holder: claim.holder, waiting: 0 });
  });
});
