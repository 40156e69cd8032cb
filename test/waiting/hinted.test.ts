import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import type { Preopen, PreopenMoment } from '../../src/waiting/turn.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { type Actor, holderOf, leaseName, PREFIX, queueName, someKey } from './actors.js';
import { asleep, direct, expectFree, expectNothingLeft, sentAbout, setStage } from './watched-redis.js';

/** A transaction that is opened when it is told to. */
class Opened implements Preopen {
  readonly noted: string[] = [];
  /** What Postgres has answered to its admission. */
  isAdmitted = false;

  open(beside: PreopenMoment): void {
    this.noted.push(beside);
  }

  wait(): void {}

  discard(): void {
    this.noted.push('discarded');
  }
}

describeWithShop('a hint', () => {
  const stage = setStage();

  /** A turn under a lease of which it is not known that nobody waits for it. */
  async function wanted(holder: Actor, key: string) {
    const before = await holder.acquire(key, { leaseTime: 30_000 });
    const turn = holder.acquire(key);
    before.end();
    return await turn;
  }

  /** A holder that is about to commit, and a contender that has heard of it. */
  async function hinted(asked: { renew?: boolean } = {}) {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await wanted(holder, key);
    const preopen = new Opened();
    const { turn } = await asleep(contender, key, { preopen, ...asked });
    const { heard, looks } = contender.store;
    const before = looks.count;
    first.hint();
    await heard.reach(heard.count + 1);
    expect(preopen.noted).toEqual(['commit']);
    return { holder, contender, key, first, preopen, turn, looked: () => looks.count - before };
  }

  test('begins a transaction, and the turn begins with the offer, which a renewal extends at once', async () => {
    const { contender, key, first, preopen, turn, looked } = await hinted();
    preopen.isAdmitted = true;
    first.end();
    const mine = await turn;
    expect(mine.lease.remaining).toBeLessThanOrEqual(1_000);
    await untilHolds(() => expect(mine.lease.remaining).toBeGreaterThan(1_000));
    expect(await holderOf(stage().admin, key)).toContain(mine.lease.holder);
    expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(1_000);
    expect(looked()).toBe(0);
    await contender.release(mine);
    await expectNothingLeft(stage(), contender, key);
    await expectFree(stage(), key);
    expect((await sentAbout(stage(), key)).filter((name) => name === 'extend')).toHaveLength(1);
  });

  test.each([
    ['Postgres has not admitted the transaction yet', false, true],
    ['the lease is not to be renewed', true, false],
  ])('begins no turn by an offer where %s: a look confirms it', async (_, isAdmitted, renew) => {
    const { contender, first, preopen, turn, looked } = await hinted({ renew });
    preopen.isAdmitted = isAdmitted;
    first.end();
    const mine = await turn;
    expect(looked()).toBe(1);
    expect(mine.lease.remaining).toBeGreaterThan(1_000);
    await contender.release(mine);
  });

  test('begins no turn by an offer that was made before it', async () => {
    const { holder, contender, key, first, preopen, turn, looked } = await hinted();
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    const next = entry.split(' ')[0];
    const { wake } = namesOf(PREFIX, key);
    let isAnswered = () => {};
    contender.store.beforeAnswer = () =>
      new Promise<void>((resolve) => {
        isAnswered = resolve;
      });
    await stage().admin.publish(wake, 'look');
    await untilHolds(() => expect(looked()).toBe(1));
    // Both come while a look is under way.
    const before = contender.store.heard.count;
    await stage().admin.publish(wake, `${next} 1000`);
    await stage().admin.publish(wake, `next ${next}`);
    await contender.store.heard.reach(before + 2);
    preopen.isAdmitted = true;
    contender.store.beforeAnswer = async () => {};
    isAnswered();
    await untilHolds(() => expect(looked()).toBe(2));
    await holder.release(first);
    await contender.release(await turn);
  });

  test('and an offer that a process reads late begin a turn in vain: the renewal finds the lease gone', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    preopen.isAdmitted = true;
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    await stage().admin.publish(namesOf(PREFIX, key).wake, `${entry.split(' ')[0]} 1000`);
    const mine = await turn;
    // Until then nobody's transaction is ended because it is older than this lease.
    expect(mine.lease.age).toBe(Number.POSITIVE_INFINITY);
    await untilHolds(() => expect(mine.lease.loss).toMatchObject({ reason: 'gone' }));
    await contender.release(mine);
    expect(first.lease.loss).toBeUndefined();
    await holder.release(first);
    await expectNothingLeft(stage(), contender, key);
    await expectFree(stage(), key);
  });

  test('keeps the lease from the callers of the process that sent it, for the next one', async () => {
    const { holder, contender, first, turn } = await hinted();
    const local = holder.acquire(first.lease.key);
    expect(first.pass(() => ({}))).toBeUndefined();
    first.end();
    await contender.release(await turn);
    await holder.release(await local);
  });

  test('is not sent while the turn before it still uses the lease', async () => {
    const [holder, key] = [direct(), someKey()];
    const first = await wanted(holder, key);
    const local = holder.acquire(key);
    first.pass(() => ({}));
    const second = await local;
    second.hint();
    await holder.store.hinted.settled();
    expect(holder.store.hinted.count).toBe(0);
    first.end();
    second.hint();
    await holder.store.hinted.settled();
    expect(holder.store.hinted.count).toBe(1);
    await holder.release(second);
  });
});
