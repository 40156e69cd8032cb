import { expect, inject, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { QuorumActor } from '../stores/quorum-actor.js';
import { describeWithShop } from '../support/shop.js';
import { Actor, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';

/** Longer than the time limits below. */
const BLOCKED = 250;

/** As an application does that computes for a while. The servers have answered when the event loop is free again. */
function block(): void {
  const until = now() + BLOCKED;
  while (now() < until);
}

describeWithShop('an event loop that is blocked for longer than Redis may take', () => {
  const url = inject('redis').url as string;

  test('an answer that has arrived meanwhile counts', async () => {
    const holder = new Actor({ url, commandTimeout: 100 });
    await holder.redis.ping();
    const claim = claimOf(someKey());
    const answer = holder.store.acquire(claim);
    block();
    expect(await answer).toMatchObject({ taken: true });
    const extended = holder.store.extend([claim]);
    block();
    expect(await extended).toEqual(['extended']);
  });

  test('the nodes of a quorum have answered in time', async () => {
    // One server is as good as three here: each client has names of its own there.
    const holder = new QuorumActor({ nodes: [] }, { urls: [`${url}/1`, `${url}/2`, `${url}/3`] });
    await Promise.all(holder.clients.map((client) => client.ping()));
    const claim = claimOf(someKey(), 1_000);
    const answer = holder.store.acquire(claim);
    block();
    expect(await answer).toMatchObject({ taken: true });
    expect(holder.events).toEqual([]);
    await holder.store.release(claim);
  });

  test('the first look of a process has the time of its connection, however little its caller waits', async () => {
    const urls = [`${url}/1`, `${url}/2`, `${url}/3`];
    for (const actor of [
      new Actor({ url }),
      new QuorumActor({ nodes: [] }, { urls }),
      new QuorumActor({ nodes: [] }, { urls, redis: { lazyConnect: true } }),
    ]) {
      const turn = actor.acquire(someKey(), { waitTime: 0 });
      // As where a process loads its modules, between the steps of the handshake.
      setImmediate(block);
      await actor.release(await turn);
    }
  });
});
