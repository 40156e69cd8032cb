import { describe, expect, test } from 'vitest';
import { gate } from '../support/shop.js';
import { someKey } from './actors.js';
import { claimOf, type MakeActor } from './claims.js';

/** The part of the contract about being told that it is worth looking. */
export function describeWakeUps(name: string, makeActor: MakeActor): void {
  const make = async () => (await makeActor()).store;

  describe(`${name}: wake-up`, () => {
    test('a release after the watch has resolved wakes, however soon it comes', async () => {
      const holder = await make();
      const claim = claimOf(someKey());
      for (let round = 0; round < 5; round++) {
        await holder.acquire(claim);
        // A new client each time: its connection for wake-ups does not even exist yet.
        const contender = await make();
        const woken = gate();
        const watch = await contender.watch(claim.key, () => woken.open());
        await holder.release(claim);
        await woken.opened;
        watch.close();
      }
    });

    test('every watcher of the key is woken, and no watcher of another', async () => {
      const [holder, contender, other, bystander] = [await make(), await make(), await make(), await make()];
      const [claim, sign] = [claimOf(someKey()), claimOf(someKey())];
      await holder.acquire(claim);
      await holder.acquire(sign);
      const woken = [gate(), gate(), gate()] as const;
      await contender.watch(claim.key, () => woken[0].open());
      await contender.watch(claim.key, () => woken[1].open());
      await other.watch(claim.key, () => woken[2].open());
      const heard: string[] = [];
      const barrier = gate();
      await bystander.watch(sign.key, () => {
        heard.push('its own');
        barrier.open();
      });
      await holder.release(claim);
      await Promise.all(woken.map(({ opened }) => opened));
      await holder.release(sign);
      await barrier.opened;
      expect(heard).toEqual(['its own']);
    });

    test('after close nothing wakes any more, and closing twice is nothing', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const closed = await contender.watch(claim.key, () => heard++);
      const barrier = gate();
      await contender.watch(claim.key, () => barrier.open());
      closed.close();
      closed.close();
      await holder.release(claim);
      await barrier.opened;
      expect(heard).toBe(0);
    });

    test('a release by somebody who does not hold it wakes nobody', async () => {
      const [holder, stranger, contender] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const woken = gate();
      await contender.watch(claim.key, () => {
        heard++;
        woken.open();
      });
      await stranger.release(claimOf(claim.key));
      await holder.release(claim);
      await woken.opened;
      expect(heard).toBe(1);
    });

    test('a renewal that finds nothing wakes those who wait: they would sleep to the end of the lost lease', async () => {
      const [holder, contender] = [await makeActor(), await make()];
      const claim = claimOf(someKey());
      await holder.store.acquire(claim);
      const woken = gate();
      await contender.watch(claim.key, () => woken.open());
      await holder.forget(claim.key);
      expect(await holder.store.extend([claim])).toEqual(['gone']);
      await woken.opened;
    });

    test('force wakes those who wait', async () => {
      const [holder, operator, contender] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      const woken = gate();
      await contender.watch(claim.key, () => woken.open());
      await operator.force(claim.key, claim.holder);
      await woken.opened;
    });

    test('after the store is closed its watchers hear nothing', async () => {
      const [holder, contender, bystander] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const watch = await contender.watch(claim.key, () => heard++);
      const barrier = gate();
      await bystander.watch(claim.key, () => barrier.open());
      await contender.close();
      await holder.release(claim);
      await barrier.opened;
      expect(heard).toBe(0);
      watch.close();
    });
  });
}
