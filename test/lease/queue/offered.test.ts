import { expect, test, vi } from 'vitest';
import { LockLostError } from '../../../src/base/errors.js';
import { namesOf } from '../../../src/redis/keys.js';
import { untilHolds } from '../../support/eventually.js';
import { describeWithShop, gate } from '../../support/shop.js';
import { type Actor, leaseName, PREFIX, queueName, receivers, someKey, turnOfLoop } from '../actors.js';
import { asleep, direct, expectNothingLeft, sentAbout, setStage } from '../watched-redis.js';

vi.mock('../../../src/base/clock.js', async (original) => {
  const { counted } = await import('../counted-clock.js');
  return counted(await original());
});

describeWithShop('an offer', () => {
  const stage = setStage();

  /** What becomes of what a turn begins with. */
  function noting() {
    const noted: string[] = [];
    const preopen = { open: () => void noted.push('opened'), discard: () => void noted.push('discarded') };
    return { noted, preopen };
  }

  test('lets its caller begin beside the look that confirms it, and no turn is had before that has its answer', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const answered = gate();
    const looking = new Promise<void>((resolve) => {
      contender.store.beforeAnswer = () => {
        resolve();
        return answered.opened;
      };
    });
    let had = false;
    const called = turn.then((mine) => {
      had = true;
      return mine;
    });
    first.end();
    await looking;
    expect(noted).toEqual(['opened']);
    expect(had).toBe(false);
    answered.open();
    await contender.release(await called);
    expect(noted).toEqual(['opened']);
  });

  test('to a caller that Postgres has admitted beside the COMMIT before it begins its turn, and its lease is extended', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const preopen = { open: () => {}, discard: () => {}, hintedAt: performance.now() };
    const { turn } = await asleep(contender, key, { preopen });
    const looks = contender.store.answers.count;
    first.end();
    const mine = await turn;
    expect(contender.store.answers.count).toBe(looks);
    expect(mine.lease.remaining).toBeLessThanOrEqual(1_000);
    // The offer is kept for a second.
    await untilHolds(async () => expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(1_000));
    expect(mine.lease.loss).toBeUndefined();
    await contender.release(mine);
    expect((await sentAbout(stage(), key)).filter((name) => name === 'extend')).toHaveLength(1);
  });

  /** A transaction that was begun at a hint, and whose admission has not been answered yet. */
  function waitingForAdmission() {
    const { noted, preopen } = noting();
    const answer = gate();
    let error: unknown;
    const admitting = answer.opened.then(() => {
      if (error !== undefined) throw error;
      own.hintedAt = performance.now();
    });
    admitting.catch(() => {});
    const own = { ...preopen, hintedAt: undefined as number | undefined, admitting };
    const refuse = () => {
      error = new Error('refused');
      answer.open();
    };
    return { noted, preopen: own, admit: answer.open, refuse };
  }

  /** Holds back the answer to the contender's next look. Resolves when the store has given it. */
  function lookHeldBack(contender: Actor) {
    const answered = gate();
    const given = new Promise<void>((resolve) => {
      contender.store.beforeAnswer = () => {
        resolve();
        return answered.opened;
      };
    });
    return { given, letGo: answered.open };
  }

  test('to a caller that is admitted before its look is answered begins its turn with the admission', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { noted, preopen, admit } = waitingForAdmission();
    const { turn } = await asleep(contender, key, { preopen });
    const { given, letGo } = lookHeldBack(contender);
    noted.length = 0;
    first.end();
    await given;
    admit();
    const mine = await turn;
    letGo();
    await untilHolds(async () => expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(1_000));
    await untilHolds(() => expect(mine.lease.remaining).toBeGreaterThan(1_000));
    expect([mine.lease.loss, noted]).toEqual([undefined, ['opened']]);
    await contender.release(mine);
    await expectNothingLeft(stage(), contender, key);
  });

  test('whose look is answered behind the release of its turn is released once more', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { preopen, admit } = waitingForAdmission();
    const { turn } = await asleep(contender, key, { preopen });
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    admit();
    await contender.release(await turn);
    const { released } = contender.store;
    const before = released.count;
    letGo();
    await released.reach(before + 1);
    await released.settled();
    await expectNothingLeft(stage(), contender, key);
  });

  test('that is over, to a caller that is admitted before the look tells it, is a lease that is lost with its answer', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { preopen, admit } = waitingForAdmission();
    const { turn } = await asleep(contender, key, { preopen });
    const { given, letGo } = lookHeldBack(contender);
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    await stage().admin.publish(namesOf(PREFIX, key).wake, `${entry.split(' ')[0]} 1000`);
    await given;
    admit();
    const mine = await turn;
    expect(mine.lease.loss).toBeUndefined();
    const { answers } = contender.store;
    const before = answers.count;
    letGo();
    await answers.reach(before + 1);
    await turnOfLoop();
    expect(mine.lease.loss).toBeInstanceOf(LockLostError);
    await contender.release(mine);
    await holder.release(first);
    await expectNothingLeft(stage(), contender, key);
  });

  test.each<[string, (refuse: () => void) => void]>([
    ['does not come', () => {}],
    ['is refused', (refuse) => refuse()],
  ])('to a caller whose admission %s is confirmed by the look', async (_, happens) => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { preopen, refuse } = waitingForAdmission();
    const { turn } = await asleep(contender, key, { preopen });
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    happens(refuse);
    letGo();
    const mine = await turn;
    expect(mine.lease.remaining).toBeGreaterThan(1_000);
    await contender.release(mine);
  });

  test('to a caller that gives up before its look is answered goes to the next caller of its process', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { preopen } = waitingForAdmission();
    const impatient = new AbortController();
    const { turn: givenUp } = await asleep(contender, key, { preopen, signal: impatient.signal });
    const next = contender.acquire(key);
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    impatient.abort(new Error('impatient'));
    await expect(givenUp).rejects.toThrow('impatient');
    letGo();
    await contender.release(await next);
    await expectNothingLeft(stage(), contender, key);
  });

  test.each([
    ['was admitted a while ago, so that the process may have been stopped since', { since: -500, renew: true }],
    ['does not have its lease renewed', { since: 0, renew: false }],
    ['has a short lease, of which little would be left', { since: -50, renew: true, leaseTime: 120 }],
  ])(
    'to a caller that %s is confirmed by a look',
    async (_, { since, renew, leaseTime = 60_000 }: { since: number; renew: boolean; leaseTime?: number }) => {
      const [holder, contender, key] = [direct(), direct(), someKey()];
      const first = await holder.acquire(key);
      const preopen = { open: () => {}, discard: () => {}, hintedAt: performance.now() + since };
      const { turn } = await asleep(contender, key, { preopen, renew, leaseTime });
      const looks = contender.store.answers.count;
      first.end();
      const mine = await turn;
      expect(contender.store.answers.count).toBe(looks + 1);
      await contender.release(mine);
    },
  );

  test('that is over when its message is believed is noticed at once: the lease is lost', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const preopen = { open: () => {}, discard: () => {}, hintedAt: performance.now() };
    const { turn } = await asleep(contender, key, { preopen });
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    await stage().admin.publish(namesOf(PREFIX, key).wake, `${entry.split(' ')[0]} 1000`);
    const mine = await turn;
    await untilHolds(() => expect(mine.lease.loss).toBeInstanceOf(LockLostError));
    await contender.release(mine);
    await holder.release(first);
  });

  test('that is over by the time its caller looks leaves nothing begun', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    const looks = contender.store.answers.count;
    // As it is read by a process that was stopped meanwhile.
    await stage().admin.publish(namesOf(PREFIX, key).wake, `${entry.split(' ')[0]} 1000`);
    await contender.store.answers.reach(looks + 1);
    await untilHolds(() => expect(noted).toEqual(['opened', 'discarded']));
    // It is not remembered at the next look, and the next offer is as good as if there had been none before.
    noted.length = 0;
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await contender.store.answers.reach(looks + 2);
    await untilHolds(() => expect(noted).toEqual(['discarded']));
    noted.length = 0;
    await holder.release(first);
    await contender.release(await turn);
    expect(noted).toEqual(['opened']);
  });

  test('to somebody else, or a release without an offer, begins nothing', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const looks = contender.store.answers.count;
    const { wake } = namesOf(PREFIX, key);
    await stage().admin.publish(wake, 'somebody 1000');
    await stage().admin.publish(wake, 'look');
    await contender.store.answers.reach(looks + 1);
    await untilHolds(() => expect(noted).toEqual(['discarded']));
    await holder.release(first);
    await contender.release(await turn);
  });

  test('is not heard by the one that made it, who listens only while it waits', async () => {
    const [first, second, key] = [direct(), direct(), someKey()];
    const before = await first.acquire(key);
    const { turn } = await asleep(second, key);
    await first.release(before);
    const mine = await turn;
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(0));
    const next = await asleep(first, key);
    expect(await receivers(stage().admin, key)).toBe(1);
    await second.release(mine);
    await first.release(await next.turn);
  });
});
