import { expect, test, vi } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import { ClosedError } from '../../src/base/errors.js';
import { describeWithShop, gate } from '../support/shop.js';
import { holderOf, leaseName, someKey, turnOfLoop } from './actors.js';
import { direct, expectFree, setStage } from './watched-redis.js';

/** Of a takeover. */
const forLong = () => ({ renew: true, signal: undefined, deadline: new Deadline(60_000) });

/** Whether it has been settled already. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await turnOfLoop();
  return settled;
}

describeWithShop('closing the waiting room', () => {
  const stage = setStage();

  test('a caller whose look is under way is turned away, and the lease that it gets is given back', async () => {
    const [actor, key] = [direct(), someKey()];
    const [answered, answer] = [gate(), gate()];
    actor.store.beforeAnswer = () => {
      answered.open();
      return answer.opened;
    };
    const turned = actor.acquire(key);
    await answered.opened;
    expect(await stage().admin.exists(leaseName(key))).toBe(1);
    const closing = actor.room.close();
    await expect(turned).rejects.toBeInstanceOf(ClosedError);
    expect(await isSettled(closing)).toBe(false);
    answer.open();
    await closing;
    await expectFree(stage(), key);
  });
});

describeWithShop('taking over a lease', () => {
  const stage = setStage();

  test('the lease goes on in the name of the successor, with its full time, and is given back in it', async () => {
    const [holder, successor, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key, { leaseTime: 5_000 });
    const { leaseTime } = first.lease;
    const turn = await successor.room.takeOver({ key, holder: first.lease.holder, leaseTime }, 'successor', forLong());
    expect(turn.lease).toMatchObject({ key, holder: 'successor', leaseTime: 5_000 });
    expect(await holderOf(stage().admin, key)).toBe('successor');
    // The one who had it before finds out by its renewal, or by giving it back: neither touches the successor's.
    await holder.release(first);
    expect(await holderOf(stage().admin, key)).toBe('successor');
    await successor.release(turn);
    turn.end();
    await successor.room.close();
    expect(successor.store.released.count).toBe(1);
    await expectFree(stage(), key);
  });

  test.each(['its signal', 'closing'])('%s ends it with the next answer of the store, or without one', async (how) => {
    const [holder, successor, key] = [direct(), direct({ commandTimeout: 600_000 }), someKey()];
    const { lease } = await holder.acquire(key);
    const end = new AbortController();
    const claim = { key, holder: lease.holder, leaseTime: lease.leaseTime };
    const answered = gate();
    const transfer = vi.spyOn(successor.store, 'transfer').mockImplementation(async () => {
      await answered.opened;
      throw new Error('no answer');
    });
    const taking = successor.room.takeOver(claim, 'successor', { ...forLong(), signal: end.signal });
    const closing = how === 'closing' ? successor.room.close() : undefined;
    if (closing === undefined) end.abort('enough');
    // The command may still be executed, so what undoes it is not sent before.
    expect(await isSettled(taking)).toBe(false);
    expect(successor.store.released.count).toBe(0);
    answered.open();
    if (closing === undefined) await expect(taking).rejects.toBe('enough');
    else await expect(taking).rejects.toMatchObject({ code: 'CLOSED', key });
    await closing;
    await successor.store.released.reach(1);
    expect(transfer).toHaveBeenCalledTimes(1);
  });
});
