import { expect, test, vi } from 'vitest';
import { LockTimeoutError } from '../../src/base/errors.js';
import { describeWithShop } from '../support/shop.js';
import { holderOf, queueName, someKey } from './actors.js';
import { asleep, direct, expectFree, expectNothingLeft, setStage, throughProxy } from './watched-redis.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

describeWithShop('the place of a process in the queue', () => {
  const stage = setStage();

  test('first come, first served across processes, each of which is woken by its own turn', async () => {
    const [holder, key] = [direct(), someKey()];
    const first = await holder.acquire(key);
    const order: number[] = [];
    const contenders = [];
    for (let index = 0; index < 5; index++) {
      const contender = direct();
      const { turn } = await asleep(contender, key);
      contenders.push(
        turn.then((mine) => {
          order.push(index);
          return contender.release(mine);
        }),
      );
    }
    await holder.release(first);
    await Promise.all(contenders);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    await expectFree(stage(), key);
  });

  test('others that hear of a turn that is not theirs send nothing', async () => {
    const [holder, contender, bystander, key] = [direct(), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    await asleep(bystander, key);
    await holder.release(first);
    await turn;
    await bystander.store.heard.reach(1);
    expect(bystander.store.wakeUps).toEqual([{ turn: (await turn).lease.holder, expiresIn: 1_000 }]);
    expect(bystander.store.looks.count).toBe(2);
  });

  test('it is kept when the caller at the head gives up and others of the process still wait', async () => {
    const [holder, contender, other, key] = [direct(), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const caller = new AbortController();
    const { turn: gone } = await asleep(contender, key, { signal: caller.signal });
    const next = contender.acquire(key);
    const { turn: elsewhere } = await asleep(other, key);
    const places = await stage().admin.lrange(queueName(key), 0, -1);
    caller.abort('enough');
    await expect(gone).rejects.toBe('enough');
    expect(await stage().admin.lrange(queueName(key), 0, -1)).toEqual(places);
    await holder.release(first);
    const turn = await next;
    expect(places[0]).toContain(turn.lease.holder);
    await contender.release(turn);
    await other.release(await elsewhere);
    await expectFree(stage(), key);
  });

  test('it is given back when all of them have given up', async () => {
    const [holder, contender, other, key] = [direct(), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const callers = [new AbortController(), new AbortController()] as const;
    const { turn: one } = await asleep(contender, key, { signal: callers[0].signal });
    const two = contender.acquire(key, { signal: callers[1].signal });
    const { turn: elsewhere } = await asleep(other, key);
    for (const caller of callers) caller.abort('enough');
    await expect(one).rejects.toBe('enough');
    await expect(two).rejects.toBe('enough');
    await contender.room.close();
    expect(contender.room.isFree(key)).toBe(true);
    expect(await stage().admin.llen(queueName(key))).toBe(1);
    await holder.release(first);
    await other.release(await elsewhere);
    await expectNothingLeft(stage(), contender, key);
  });

  test('so is an offer that came when they had given up: the next process has its turn at once', async () => {
    const [holder, contender, other, key] = [direct(), throughProxy(stage()), direct(), someKey()];
    const first = await holder.acquire(key);
    const caller = new AbortController();
    const { turn: gone } = await asleep(contender, key, { signal: caller.signal });
    const { turn: elsewhere } = await asleep(other, key);
    // It hears nothing of the offer, and so cannot come for it.
    stage().proxy.silence('toClient');
    await holder.release(first);
    const offer = await holderOf(stage().admin, key);
    caller.abort('enough');
    await expect(gone).rejects.toBe('enough');
    const turn = await elsewhere;
    expect(offer).not.toBe(turn.lease.holder);
    expect(
      other.store.wakeUps.map((wakeUp) => typeof wakeUp === 'object' && 'turn' in wakeUp && wakeUp.turn),
    ).toContain(offer);
    // Three looks: it did not have to find out by itself that the offer was over.
    expect(other.store.looks.count).toBe(3);
    await other.release(turn);
  });

  test('so is a lease whose answer came when they had given up', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const caller = new AbortController();
    const { turn: gone } = await asleep(contender, key, { signal: caller.signal });
    contender.store.beforeAnswer = async (look) => {
      if (look === 3) caller.abort('enough');
    };
    await holder.release(first);
    await expect(gone).rejects.toBe('enough');
    await expectNothingLeft(stage(), contender, key);
    await expectFree(stage(), key);
  });

  test('a caller without a wait time takes none', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    await expect(contender.acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await stage().admin.exists(queueName(key))).toBe(0);
    await expectNothingLeft(stage(), contender, key);
    await holder.release(first);
  });

  test('it is kept for longer when a caller comes that waits for longer', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    await holder.acquire(key);
    await asleep(contender, key, { waitTime: 5_000 });
    const spare = (await stage().admin.pttl(queueName(key))) - 5_000;
    void contender.acquire(key, { waitTime: 500_000 });
    await contender.store.answers.reach(3);
    expect(await stage().admin.pttl(queueName(key))).toBeGreaterThan(500_000 + spare - 5_000);
    // And not asked for again by one that waits for less.
    void contender.acquire(key, { waitTime: 1_000 }).catch(() => {});
    void contender.acquire(key, { waitTime: 500_000 + spare / 2 });
    await contender.redis.ping();
    expect(contender.store.looks.count).toBe(3);
  });

  test('while a turn lasts the process has none, and after a yield it is behind those who waited', async () => {
    const [holder, contender, other, key] = [direct({ passOnAfter: 0 }), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const again = holder.acquire(key);
    const { turn: one } = await asleep(contender, key);
    const { turn: two } = await asleep(other, key);
    expect(await stage().admin.llen(queueName(key))).toBe(2);
    first.end();
    const turn = await one;
    await holder.store.answers.reach(3);
    expect(await stage().admin.llen(queueName(key))).toBe(2);
    await contender.release(turn);
    await other.release(await two);
    await holder.release(await again);
    await expectFree(stage(), key);
  });
});
