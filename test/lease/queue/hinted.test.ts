import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { LockLostError } from '../../../src/base/errors.js';
import type { Emit } from '../../../src/base/events.js';
import type { Turn } from '../../../src/lease/lease.js';
import type { Preopen, PreopenMoment } from '../../../src/lease/queue/request.js';
import { Denied, type LeaseStore } from '../../../src/lease/store.js';
import { namesOf } from '../../../src/redis/names.js';
import { FallbackStore } from '../../../src/stores/fallback.js';
import { untilHolds } from '../../support/eventually.js';
import { describeWithShop, gate } from '../../support/shop.js';
import { type Actor, holderOf, leaseName, PREFIX, queueName, receivers, someKey, turnOfLoop } from '../actors.js';
import { asleep, direct, expectFree, expectNothingLeft, sentAbout, setStage, throughProxy } from '../watched-redis.js';

vi.mock('../../../src/base/clock.js', async (original) => {
  const { counted } = await import('../counted-clock.js');
  return counted(await original());
});

/** A transaction that begins when it is told to, and what Postgres answers to its admission. */
class Beginning implements Preopen {
  readonly noted: string[] = [];
  former: string | undefined;
  admitting: Promise<void> | undefined;
  readonly #answer = gate();
  #holder = '';
  #refused: unknown;

  open(beside: PreopenMoment): void {
    this.noted.push(beside === 'look' ? 'look' : `behind ${beside.attempt}`);
    if (beside === 'look') return;
    this.#holder = beside.holder;
    this.admitting = this.#answer.opened.then(() => {
      if (this.#refused !== undefined) throw this.#refused;
    });
    this.admitting.catch(() => {});
  }

  discard(): void {
    this.noted.push('discarded');
    this.former = undefined;
    this.admitting = undefined;
  }

  /** @param next whether nobody had the key in between. */
  admit(next = true): void {
    if (next && this.admitting !== undefined) this.former = this.#holder;
    this.#answer.open();
  }

  refuse(): void {
    this.#refused = new Error('refused');
    this.#answer.open();
  }
}

/** Ends the connection for wake-ups of the client with this name. */
async function killSubscriber(admin: Redis, connectionName: string): Promise<void> {
  const list = (await admin.client('LIST', 'TYPE', 'PUBSUB')) as string;
  const line = list.split('\n').find((each) => each.includes(` name=${connectionName} `));
  await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(line ?? '')?.[1] ?? '');
}

describeWithShop('a hint', () => {
  const stage = setStage();

  /** A holder whose COMMIT has been sent, and a contender that has heard of it. */
  async function hinted(
    asked: { renew?: boolean; signal?: AbortSignal } = {},
    contender = direct(),
    holder = direct(),
  ) {
    const key = someKey();
    const first = await holder.acquire(key);
    const preopen = new Beginning();
    const { turn } = await asleep(contender, key, { preopen, ...asked });
    const { heard } = contender.store;
    const [told, looks] = [heard.count, contender.store.looks.count];
    preopen.noted.length = 0;
    await holder.store.hint?.(first.lease, 'attempt');
    await heard.reach(told + 1);
    return { holder, contender, key, first, preopen, turn, looks };
  }

  /** A turn that has begun ahead in a process that goes on without the store, which falls silent, and a handle behind it. */
  async function aheadWithoutStore() {
    const contender = throughProxy(stage(), {
      commandTimeout: 200,
      wrap: (store, emit) => new FallbackStore(store, emit),
    });
    const { holder, first, preopen, turn } = await hinted({}, contender);
    stage().proxy.silence();
    preopen.admit();
    const mine = await turn;
    const handle = contender.acquire(mine.lease.key, { mayShare: false });
    return { holder, contender, first, mine, handle };
  }

  /** Holds back the answer to the contender's next look. Resolves when the store has given it. */
  function lookHeldBack(contender: Actor) {
    const answered = gate();
    const given = new Promise<void>((resolve) => {
      contender.store.beforeAnswer = () => {
        contender.store.beforeAnswer = async () => {};
        resolve();
        return answered.opened;
      };
    });
    return { given, letGo: answered.open };
  }

  const isHad = async (turn: Promise<Turn>) => {
    await turnOfLoop();
    return (await Promise.race([turn, turnOfLoop()])) !== undefined;
  };

  test('begins a transaction, and its admission the turn: the store learns of it beside the work', async () => {
    const { holder, contender, key, first, preopen, turn, looks } = await hinted();
    expect([preopen.noted, await isHad(turn)]).toEqual([['behind attempt'], false]);
    const { given, letGo } = lookHeldBack(contender);
    preopen.admit();
    const mine = await turn;
    await given;
    letGo();
    expect(await holderOf(stage().admin, key)).toBe(mine.lease.holder);
    expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(1_000);
    // The former holder's release comes late, and finds another one.
    await holder.release(first);
    expect(await holderOf(stage().admin, key)).toBe(mine.lease.holder);
    expect(mine.lease.remaining).toBeGreaterThan(1_000);
    expect([preopen.noted, contender.store.looks.count]).toEqual([['behind attempt'], looks + 1]);
    await contender.release(mine);
    await expectNothingLeft(stage(), contender, key);
    await expectFree(stage(), key);
    expect((await sentAbout(stage(), key)).filter((name) => name === 'extend')).toEqual([]);
  });

  test('of an older version, which does not tell the former holder, begins a transaction and no turn', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const preopen = new Beginning();
    const { turn } = await asleep(contender, key, { preopen });
    preopen.noted.length = 0;
    const [place = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    const told = contender.store.heard.count;
    await stage().admin.publish(namesOf(PREFIX, key).wake, `next ${place.split(' ')[0]}`);
    await contender.store.heard.reach(told + 1);
    expect(preopen.noted).toEqual(['behind ']);
    await holder.release(first);
    await contender.release(await turn);
  });

  test('is all that a turn needs whose holder dies behind its COMMIT', async () => {
    const { holder, contender, key, preopen, turn } = await hinted();
    await holder.close();
    preopen.admit();
    const mine = await turn;
    await untilHolds(async () => expect(await holderOf(stage().admin, key)).toBe(mine.lease.holder));
    await contender.release(mine);
    await expectFree(stage(), key);
  });

  test('gives a lease that is not renewed its full time, too', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted({ renew: false });
    preopen.admit();
    const mine = await turn;
    await untilHolds(async () => expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(59_000));
    await holder.release(first);
    await contender.release(mine);
  });

  test('gives nobody the key whose admission came behind another one', async () => {
    const { holder, contender, first, preopen, turn, looks } = await hinted();
    preopen.admit(false);
    expect([await isHad(turn), contender.store.looks.count]).toEqual([false, looks]);
    await holder.release(first);
    await contender.release(await turn);
  });

  test.each<[string, (preopen: Beginning) => void]>([
    ['does not come', () => {}],
    ['is refused', (preopen) => preopen.refuse()],
    ['came behind another one', (preopen) => preopen.admit(false)],
  ])('leaves it to the look where the admission %s before its answer', async (_, happens) => {
    const { holder, contender, first, preopen, turn } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    happens(preopen);
    expect(await isHad(turn)).toBe(false);
    letGo();
    const mine = await turn;
    await contender.release(mine);
    await holder.store.released.settled();
  });

  test('begins the turn with the admission where a look is under way, whose answer confirms the lease', async () => {
    const { contender, key, first, preopen, turn, looks } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    preopen.admit();
    const mine = await turn;
    letGo();
    await contender.store.answers.reach(looks + 1);
    expect([mine.lease.loss, contender.store.looks.count]).toEqual([undefined, looks + 1]);
    expect(await stage().admin.pttl(leaseName(key))).toBeGreaterThan(1_000);
    await contender.release(mine);
    await expectNothingLeft(stage(), contender, key);
  });

  test('that comes while a look is under way is not forgotten with its answer, and the store is asked again', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const preopen = new Beginning();
    const { turn } = await asleep(contender, key, { preopen });
    const { heard, answers, looks } = contender.store;
    const { given, letGo } = lookHeldBack(contender);
    const [told, before] = [heard.count, answers.count];
    // Nobody has released it.
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await given;
    await holder.store.hint?.(first.lease, 'attempt');
    await heard.reach(told + 2);
    letGo();
    await answers.reach(before + 1);
    expect(await isHad(turn)).toBe(false);
    preopen.admit();
    const mine = await turn;
    await looks.reach(before + 2);
    await untilHolds(async () => expect(await holderOf(stage().admin, key)).toBe(mine.lease.holder));
    await contender.release(mine);
    await holder.release(first);
  });

  test('asks the store again where its look was answered before the admission that the former holder has the key', async () => {
    const { holder, contender, key, first, preopen, turn, looks } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await given;
    preopen.admit();
    const mine = await turn;
    expect(await holderOf(stage().admin, key)).toBe(first.lease.holder);
    letGo();
    await contender.store.answers.reach(looks + 2);
    expect([await holderOf(stage().admin, key), mine.lease.loss]).toEqual([mine.lease.holder, undefined]);
    await contender.release(mine);
    await holder.release(first);
    await expectFree(stage(), key);
  });

  test('asks the store again where its look was answered before the former holder had the key', async () => {
    const { holder, contender, key, first, preopen, turn, looks } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    await stage().admin.set(leaseName(key), 'before 60000', 'PX', 60_000);
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await given;
    await stage().admin.set(leaseName(key), `${first.lease.holder} 60000`, 'PX', 60_000);
    preopen.admit();
    const mine = await turn;
    letGo();
    await contender.store.answers.reach(looks + 2);
    expect([await holderOf(stage().admin, key), mine.lease.loss]).toEqual([mine.lease.holder, undefined]);
    await contender.release(mine);
    await holder.release(first);
  });

  test('whose look is answered behind the release of the turn is released once more', async () => {
    const { contender, key, first, preopen, turn } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    first.end();
    await given;
    preopen.admit();
    await contender.release(await turn);
    const { released } = contender.store;
    const before = released.count;
    letGo();
    await released.reach(before + 1);
    await released.settled();
    await expectNothingLeft(stage(), contender, key);
  });

  test('begins a turn whose lease is lost with the answer that another process has the key', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    await stage().admin.set(leaseName(key), 'stranger 60000', 'PX', 60_000);
    preopen.admit();
    const mine = await turn;
    await untilHolds(() => expect(mine.lease.loss).toBeInstanceOf(LockLostError));
    await contender.release(mine);
    await holder.release(first);
    expect(await holderOf(stage().admin, key)).toBe('stranger');
    await stage().admin.del(leaseName(key));
  });

  test('to a caller that gives up goes to nobody, and the next caller of its process waits for the release', async () => {
    const impatient = new AbortController();
    const { holder, contender, key, first, preopen, turn } = await hinted({ signal: impatient.signal });
    const next = contender.acquire(key);
    impatient.abort(new Error('impatient'));
    await expect(turn).rejects.toThrow('impatient');
    preopen.admit();
    expect(await isHad(next)).toBe(false);
    await holder.release(first);
    await contender.release(await next);
    await expectNothingLeft(stage(), contender, key);
  });

  test('of what Postgres has refused leaves nothing begun', async () => {
    const { holder, contender, first, preopen, turn } = await hinted();
    preopen.refuse();
    await untilHolds(() => expect(preopen.noted).toEqual(['behind attempt', 'discarded']));
    await holder.release(first);
    await contender.release(await turn);
  });

  test('lets its process go on listening until the store knows of the turn: the release would pass it over', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    const third = await asleep(direct(), key);
    const maySend = gate();
    contender.store.beforeLook = () => maySend.opened;
    preopen.admit();
    const mine = await turn;
    // Longer than a process listens behind the start of another turn.
    await sleep(20);
    await holder.release(first);
    const { answers } = contender.store;
    const before = answers.count;
    maySend.open();
    await answers.reach(before + 1);
    expect([await holderOf(stage().admin, key), mine.lease.loss]).toEqual([mine.lease.holder, undefined]);
    await contender.release(mine);
    (await third.turn).end();
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(0));
  });

  test('begins a turn of which the store is told again where the look fails', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    let fails = 2;
    contender.store.beforeLook = async () => {
      if (fails-- > 0) throw new Error('no answer');
    };
    preopen.admit();
    const mine = await turn;
    await untilHolds(async () => expect(await holderOf(stage().admin, key)).toBe(mine.lease.holder));
    expect(contender.events.map(({ type }) => type)).toEqual(['look-failed', 'look-failed']);
    await holder.release(first);
    await contender.release(mine);
    await expectNothingLeft(stage(), contender, key);
  });

  test('begins a turn that is over before the store has answered: it is told no more, and nothing is lost', async () => {
    const { holder, contender, key, first, preopen, turn, looks } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await given;
    preopen.admit();
    await contender.release(await turn);
    letGo();
    await contender.store.answers.reach(looks + 1);
    await turnOfLoop();
    expect([contender.store.looks.count, contender.events]).toEqual([looks + 1, []]);
    expect(await holderOf(stage().admin, key)).toBe(first.lease.holder);
    await holder.release(first);
    await expectFree(stage(), key);
  });

  test('begins a turn whose lease is lost without a word where the answer comes behind its end', async () => {
    const { holder, contender, key, first, preopen, turn, looks } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    await stage().admin.set(leaseName(key), 'stranger 60000', 'PX', 60_000);
    preopen.admit();
    const mine = await turn;
    await given;
    await contender.release(mine);
    letGo();
    await contender.store.answers.reach(looks + 1);
    await turnOfLoop();
    expect([mine.lease.loss, contender.events]).toEqual([undefined, []]);
    await stage().admin.del(leaseName(key));
    await holder.release(first);
  });

  test('gives a handle no lease that the store has not given: it goes on without the store', async () => {
    const { holder, contender, first, mine, handle } = await aheadWithoutStore();
    mine.end();
    expect(await isHad(handle)).toBe(false);
    stage().proxy.resume();
    await holder.release(first);
    const its = await handle;
    expect([its.lease.shared, await holderOf(stage().admin, its.lease.key)]).toEqual([false, its.lease.holder]);
    await contender.release(its);
  });

  test('gives the callers behind the first one the same lease, also where the work ends before the store has answered', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    const { given, letGo } = lookHeldBack(contender);
    const next = contender.acquire(key);
    preopen.admit();
    const mine = await turn;
    await given;
    mine.end();
    expect(await isHad(next)).toBe(false);
    letGo();
    const its = await next;
    expect([its.lease.holder, await holderOf(stage().admin, key)]).toEqual([mine.lease.holder, mine.lease.holder]);
    await contender.release(its);
    await holder.release(first);
    await expectNothingLeft(stage(), contender, key);
  });

  describe('begins a turn that ends before the store has answered', () => {
    /** The line to the store falls silent before the look, and the next caller waits for the answer. */
    async function silentBehindTurn({ commandTimeout, waitTime }: { commandTimeout: number; waitTime: number }) {
      const contender = throughProxy(stage(), { commandTimeout });
      const { holder, key, first, preopen, turn } = await hinted({}, contender);
      stage().proxy.silence();
      preopen.admit();
      const mine = await turn;
      const next = contender.acquire(key, { waitTime });
      mine.end();
      const resume = async () => {
        stage().proxy.resume();
        await holder.release(first);
      };
      return { contender, next, resume };
    }

    test.each([
      ['while the first look has no answer', 60_000],
      ['after the first look has failed', 300],
    ])('the next caller is told that the store is silent, %s', async (_, commandTimeout) => {
      const { next, resume } = await silentBehindTurn({ commandTimeout, waitTime: 900 });
      await expect(next).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await resume();
    });

    test('the next caller is told at once that the store refuses this client', async () => {
      const { holder, contender, key, first, preopen, turn } = await hinted();
      const refused = gate();
      contender.store.beforeLook = async () => {
        await refused.opened;
        throw new Denied('NOPERM');
      };
      preopen.admit();
      const mine = await turn;
      const next = contender.acquire(key);
      mine.end();
      refused.open();
      await expect(next).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await holder.release(first);
    });

    test('a silent store does not hold up the end of its client for longer than a look', async () => {
      const { contender, next, resume } = await silentBehindTurn({ commandTimeout: 300, waitTime: 60_000 });
      await contender.room.close();
      await expect(next).rejects.toMatchObject({ code: 'CLOSED' });
      await resume();
    });

    test('no work is reported as lost where another process has the key', async () => {
      const { holder, contender, key, first, preopen, turn } = await hinted();
      const { given, letGo } = lookHeldBack(contender);
      await stage().admin.set(leaseName(key), 'stranger 60000', 'PX', 60_000);
      preopen.admit();
      const mine = await turn;
      const next = contender.acquire(key);
      await given;
      const { answers } = contender.store;
      const before = answers.count;
      mine.end();
      letGo();
      // The next caller has asked by itself.
      await answers.reach(before + 2);
      expect([mine.lease.loss, contender.events]).toEqual([expect.any(LockLostError), []]);
      await stage().admin.del(leaseName(key));
      await holder.release(first);
      await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
      await contender.release(await next);
    });
  });

  test('to a caller that aborts with its admission gives a handle behind it no lease before the store has', async () => {
    for (let ticks = 0; ticks < 8; ticks++) {
      const impatient = new AbortController();
      const { holder, contender, key, first, preopen, turn } = await hinted({ signal: impatient.signal });
      const handle = contender.acquire(key, { mayShare: false });
      const { given, letGo } = lookHeldBack(contender);
      preopen.admit();
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      impatient.abort(new Error('impatient'));
      const mine = await turn.catch(() => undefined);
      await Promise.race([given, turnOfLoop()]);
      expect([ticks, await isHad(handle)]).toEqual([ticks, false]);
      letGo();
      mine?.end();
      await holder.release(first);
      await contender.release(await handle);
    }
  });

  test('gives a lease without the store that is known to be shared', async () => {
    const { holder, contender, first, mine, handle } = await aheadWithoutStore();
    await mine.lease.confirming;
    expect([mine.lease.shared, mine.lease.loss]).toEqual([true, undefined]);
    mine.end();
    expect(await isHad(handle)).toBe(false);
    stage().proxy.resume();
    await holder.release(first);
    await contender.release(await handle);
  });

  test('is not heard by a process whose caller has its turn: the next one waits for its end', async () => {
    const { holder, contender, key, first, preopen, turn } = await hinted();
    preopen.admit();
    const mine = await turn;
    await mine.lease.confirming;
    const later = new Beginning();
    const next = contender.acquire(key, { preopen: later });
    const watch = await contender.store.watch(key, () => {});
    const told = contender.store.heard.count;
    await stage().admin.publish(namesOf(PREFIX, key).wake, `next ${mine.lease.holder} somebody attempt`);
    await contender.store.heard.reach(told + 1);
    expect(later.noted).not.toContain('behind attempt');
    watch.close();
    await contender.release(mine);
    await holder.release(first);
    await contender.release(await next);
  });

  test('to a caller that aborts with its admission gives the next caller of its process a whole lease', async () => {
    for (let ticks = 0; ticks < 8; ticks++) {
      const impatient = new AbortController();
      const { holder, contender, key, first, preopen, turn } = await hinted({ signal: impatient.signal });
      const next = contender.acquire(key);
      const { given, letGo } = lookHeldBack(contender);
      await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
      await given;
      preopen.admit();
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      impatient.abort(new Error('impatient'));
      letGo();
      await turn.then((its) => contender.release(its)).catch(() => {});
      await holder.release(first);
      const its = await next;
      await its.lease.confirming;
      expect([ticks, its.lease.loss, await holderOf(stage().admin, key)]).toEqual([ticks, undefined, its.lease.holder]);
      await contender.release(its);
    }
  });

  test('to a process whose subscription is lost keeps the lease from the callers of the former holder, too', async () => {
    const { holder, contender, key, first, turn } = await hinted({}, throughProxy(stage()));
    first.lease.contended = true;
    first.hint('attempt');
    stage().proxy.reset();
    stage().proxy.silence();
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(0));
    const local = holder.acquire(key);
    first.end();
    // Nobody is there to be offered the key. The process that was told may still take over what has the former id.
    const its = await local;
    expect(its.lease.holder).not.toBe(first.lease.holder);
    stage().proxy.resume();
    await holder.release(its);
    await contender.release(await turn);
  });

  test('whose process loses its subscription before the release keeps the key for that process', async () => {
    const connectionName = randomUUID();
    const contender = direct({ redis: { connectionName } });
    const { holder, key, first, preopen, turn } = await hinted({}, contender);
    const bystander = direct();
    const { turn: later } = await asleep(bystander, key);
    first.lease.contended = true;
    first.hint('attempt');
    const mayLook = gate();
    contender.store.beforeLook = () => mayLook.opened;
    await killSubscriber(stage().admin, connectionName);
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(1));
    await holder.release(first);
    preopen.admit();
    mayLook.open();
    const mine = await turn;
    await mine.lease.confirming;
    expect([mine.lease.loss, await holderOf(stage().admin, key)]).toEqual([undefined, mine.lease.holder]);
    await contender.release(mine);
    await bystander.release(await later);
  });

  test('that has no answer at the release keeps the key for a process that loses its subscription, too', async () => {
    const connectionName = randomUUID();
    const contender = direct({ redis: { connectionName } });
    const { key, first, preopen, turn } = await hinted({}, contender, throughProxy(stage()));
    const bystander = direct();
    const { turn: later } = await asleep(bystander, key);
    first.lease.contended = true;
    stage().proxy.silence('toClient');
    first.hint('attempt');
    const mayLook = gate();
    contender.store.beforeLook = () => mayLook.opened;
    await killSubscriber(stage().admin, connectionName);
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(1));
    first.end();
    await untilHolds(async () => expect(await holderOf(stage().admin, key)).not.toBe(first.lease.holder));
    preopen.admit();
    mayLook.open();
    const mine = await turn;
    await mine.lease.confirming;
    expect([mine.lease.loss, await holderOf(stage().admin, key)]).toEqual([undefined, mine.lease.holder]);
    stage().proxy.resume();
    await contender.release(mine);
    await bystander.release(await later);
  });

  test.each([
    ['itself', (store: LeaseStore) => store],
    ['behind one that goes on without it', (store: LeaseStore, emit: Emit) => new FallbackStore(store, emit)],
  ])('that a store without wake-ups cannot send (%s) keeps the lease from no caller', async (_, wrap) => {
    const [holder, key] = [direct({ polls: true, wrap }), someKey()];
    const first = await holder.acquire(key);
    first.lease.contended = true;
    first.hint('attempt');
    const next = holder.acquire(key);
    first.end();
    const its = await next;
    expect(its.lease.holder).toBe(first.lease.holder);
    await holder.release(its);
  });

  test('keeps the lease from the callers of the process that gave it, which the next one takes over', async () => {
    const { holder, contender, first, preopen, turn } = await hinted();
    first.lease.contended = true;
    first.hint('attempt');
    const local = holder.acquire(first.lease.key);
    let taken = false;
    first.pass(() => {
      taken = true;
      return {};
    });
    expect(taken).toBe(false);
    preopen.admit();
    const mine = await turn;
    await mine.lease.confirming;
    // Its COMMIT is done, as the next process knows: its call resolves, and nothing is lost.
    expect(await holder.renewal.look(first.lease)).toBe(true);
    expect(holder.events).toEqual([]);
    first.end();
    await contender.release(mine);
    const its = await local;
    expect(its.lease.holder).not.toBe(first.lease.holder);
    await holder.release(its);
  });

  describe('of a transaction that Postgres has rolled back', () => {
    /** A holder that has sent a hint. */
    async function hinting() {
      const [holder, key] = [direct(), someKey()];
      const first = await holder.acquire(key);
      first.lease.contended = true;
      const takeBack = first.hint('attempt') as () => void;
      const losesLease = async () => {
        await stage().admin.del(leaseName(key));
        expect(await holder.renewal.look(first.lease)).toBe(true);
      };
      return { holder, key, first, takeBack, losesLease };
    }

    const typesOf = ({ events }: Actor) => events.map(({ type }) => type);

    test('keeps the lease from no caller of its process', async () => {
      const { holder, key, first, takeBack } = await hinting();
      const local = holder.acquire(key);
      takeBack();
      first.end();
      const its = await local;
      expect(its.lease.holder).toBe(first.lease.holder);
      await holder.release(its);
    });

    test('does not hide that the lease is lost in the next attempt', async () => {
      const { holder, first, takeBack, losesLease } = await hinting();
      takeBack();
      await losesLease();
      expect(typesOf(holder)).toEqual(['lease-lost']);
      await holder.release(first);
    });

    test('has not hidden that the lease was lost before the outcome was known', async () => {
      const [holder, contender, key, over] = [direct(), direct(), someKey(), new AbortController()];
      const first = await holder.acquire(key);
      const { turn } = await asleep(contender, key, { signal: over.signal });
      turn.catch(() => {});
      first.lease.contended = true;
      const takeBack = first.hint('attempt') as () => void;
      await contender.store.heard.reach(1);
      over.abort();
      await stage().admin.del(leaseName(key));
      expect(await holder.renewal.look(first.lease)).toBe(true);
      expect(typesOf(holder)).toEqual([]);
      takeBack();
      expect(typesOf(holder)).toEqual(['lease-lost']);
      await holder.release(first);
    });

    test('leaves that of a later attempt as it is', async () => {
      const { holder, key, first, takeBack } = await hinting();
      takeBack();
      first.hint('later attempt');
      takeBack();
      const local = holder.acquire(key);
      first.end();
      const its = await local;
      expect(its.lease.holder).not.toBe(first.lease.holder);
      await holder.release(its);
    });
  });

  test('is not sent while the turn before it still uses the lease, which the end of this turn does not release', async () => {
    const [holder, key] = [direct(), someKey()];
    const first = await holder.acquire(key);
    const local = holder.acquire(key);
    first.pass(() => ({}));
    const second = await local;
    first.lease.contended = true;
    expect(second.hint('attempt')).toBeUndefined();
    first.end();
    expect(second.hint('attempt')).toBeDefined();
    await holder.release(second);
  });
});
