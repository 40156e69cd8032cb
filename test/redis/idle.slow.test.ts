import { expect, inject, onTestFinished, test } from 'vitest';
import { type IdleEnd, idleProxy } from '../support/idle-proxy.js';
import { describeWithShop } from '../support/shop.js';
import { Actor, type ActorOptions, someKey } from '../waiting/actors.js';

/** The subscriber pings more often than that. */
const LONGER_THAN_PINGS = 7_000;

describeWithShop('behind what cuts idle connections', () => {
  async function way(idle: number, how: IdleEnd) {
    const proxy = await idleProxy(inject('redis').url as string, idle, how);
    onTestFinished(() => proxy[Symbol.asyncDispose]());
    const make = (options: Omit<ActorOptions, 'url'> = {}) => new Actor({ url: proxy.url, ...options });
    return { proxy, make };
  }
  const seen = ({ events }: Actor) => events.map(({ type }) => type);

  test('a reset between any two renewals: the lease is held, and whoever waits gets the key', async () => {
    const { proxy, make } = await way(500, 'reset');
    const [holder, contender] = [make(), make()];
    const key = someKey();
    const turn = await holder.acquire(key, { leaseTime: 4_500 });
    const { lease } = turn;
    holder.renewal.add(lease);
    const waiting = contender.acquire(key);
    await holder.store.extended.reach(4);
    expect(holder.store.extensions.flatMap(({ answers }) => answers)).toEqual(Array(4).fill('extended'));
    expect(lease.loss).toBeUndefined();
    expect(proxy.ended).toBeGreaterThan(4);
    holder.renewal.remove(lease);
    turn.end();
    await waiting;
    expect([...seen(holder), ...seen(contender)]).not.toContain('look-failed');
  });

  test('the subscriber is never idle for long enough, and hears of the release', async () => {
    const { proxy, make } = await way(LONGER_THAN_PINGS, 'reset');
    const [holder, contender] = [make(), make()];
    const key = someKey();
    const turn = await holder.acquire(key);
    const waiting = contender.acquire(key);
    await contender.store.answers.reach(2);
    await new Promise((resolve) => setTimeout(resolve, LONGER_THAN_PINGS + 2_000));
    // The connections for commands, and those alone.
    expect(proxy.ended).toBe(2);
    expect(seen(contender)).toEqual([]);
    await holder.release(turn);
    const { lease } = await waiting;
    // The look is that of a connection for wake-ups that is made anew, because the client has connected again.
    expect(contender.store.wakeUps).toEqual(['look', { offeredTo: lease.holder, expiresIn: 1_000 }]);
  });

  test('connections that are forgotten without a word: socketTimeout replaces them', async () => {
    // Longer than a busy machine takes between two steps of a handshake, and shorter than the pause between renewals.
    const { proxy, make } = await way(500, 'forgotten');
    const holder = make({ redis: { socketTimeout: 600 } });
    const { lease } = await holder.acquire(someKey(), { leaseTime: 9_000 });
    holder.renewal.add(lease);
    await holder.store.extended.reach(3);
    expect(holder.store.extensions.flatMap(({ answers }) => answers)).toEqual(Array(3).fill('extended'));
    expect(proxy.ended).toBeGreaterThan(2);
  });
});
