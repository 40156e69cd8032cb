import { expect, test } from 'vitest';
import type { Claim, LeaseStore } from '../../src/waiting/store.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { holderOf, leaseName, someKey } from './actors.js';
import { ObservedStore } from './observed-store.js';
import { asleep, direct, expectFree, setStage, throughProxy } from './watched-redis.js';

/** Gives back nothing for the keys that it is told. */
class Refusing extends ObservedStore {
  readonly #refuses: (key: string) => boolean;

  constructor(store: LeaseStore, refuses: (key: string) => boolean) {
    super(store);
    this.#refuses = refuses;
  }

  override release(claim: Claim, quietly?: boolean): Promise<void> {
    return this.#refuses(claim.key) ? Promise.reject(new Error('not now')) : super.release(claim, quietly);
  }
}

describeWithShop('a release', () => {
  const stage = setStage();

  test('that failed is sent again, and nobody waits for the rest of a long lease', async () => {
    const [contender, key] = [direct(), someKey()];
    const holder = throughProxy(stage(), { commandTimeout: 100 });
    const turn = await holder.acquire(key);
    const { turn: next } = await asleep(contender, key);
    const closed = new Promise((resolve) => holder.redis.once('close', resolve));
    await stage().proxy.refuse();
    stage().proxy.reset();
    await closed;
    await holder.release(turn).catch(() => {});
    expect(holder.events).toMatchObject([{ type: 'release-failed', key }]);
    expect(await holderOf(stage().admin, key)).toBe(turn.lease.holder);
    await stage().proxy.refuse(false);
    await contender.release(await next);
    await holder.room.close();
    expect(holder.events).toHaveLength(1);
    await expectFree(stage(), key);
  });

  test('that failed is sent once more when the room closes, and closing does not wait for another try', async () => {
    const [key, holder] = [someKey(), throughProxy(stage(), { commandTimeout: 100 })];
    const turn = await holder.acquire(key);
    const closed = new Promise((resolve) => holder.redis.once('close', resolve));
    await stage().proxy.refuse();
    stage().proxy.reset();
    await closed;
    await holder.release(turn).catch(() => {});
    const tries = holder.store.released.count;
    await holder.room.close();
    expect(holder.store.released.count).toBeGreaterThan(tries);
    expect(await holderOf(stage().admin, key)).toBe(turn.lease.holder);
    await stage().proxy.refuse(false);
    await stage().admin.del(leaseName(key));
  });

  test('that cannot be done does not hold up another one, which failed only once', async () => {
    const [never, once] = [someKey(), someKey()];
    const failing = new Set([never, once]);
    const holder = direct({ wrap: (store) => new Refusing(store, (key) => failing.has(key)) });
    const turns = [await holder.acquire(never), await holder.acquire(once)];
    for (const turn of turns) await holder.release(turn);
    expect(holder.events).toMatchObject([
      { type: 'release-failed', key: never },
      { type: 'release-failed', key: once },
    ]);
    failing.delete(once);
    await eventually('the other one is given back', async () => (await stage().admin.exists(leaseName(once))) === 0);
    failing.clear();
    await holder.room.close();
    await expectFree(stage(), never);
  });

  test('that a server has forgotten is sent again when the client is connected again, though nobody here wants the key', async () => {
    const key = someKey();
    const holder = throughProxy(stage());
    const listeners = holder.redis.listenerCount('ready');
    const turn = await holder.acquire(key);
    await holder.release(turn);
    await stage().admin.set(leaseName(key), turn.lease.holder, 'PX', 60_000);
    const released = holder.store.released.count;
    stage().proxy.reset();
    await holder.store.released.reach(released + 1);
    await expectFree(stage(), key);
    await holder.room.close();
    expect(holder.redis.listenerCount('ready')).toBe(listeners);
  });

  test('in which a holder yielded, and that a server has forgotten, is sent again as well', async () => {
    const [key, contender] = [someKey(), direct()];
    const holder = throughProxy(stage(), { passOnAfter: 0 });
    const turn = await holder.acquire(key);
    const next = holder.acquire(key);
    const { turn: contended } = await asleep(contender, key);
    await holder.release(turn);
    await contender.release(await contended);
    await holder.release(await next);
    await holder.store.released.reach(1);
    await stage().admin.set(leaseName(key), turn.lease.holder, 'PX', 60_000);
    stage().proxy.reset();
    await holder.store.released.reach(3);
    await expectFree(stage(), key);
  });
});
