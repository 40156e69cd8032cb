import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import type { Turn } from '../../../src/lease/lease.js';
import type { AcquireResult, LeaseStore } from '../../../src/lease/store.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop } from '../../support/shop.js';
import { type Actor, type Asked, holderOf, leaseName, queueName, someKey, turnOfLoop } from '../actors.js';
import { clock } from '../stopped-clock.js';
import {
  asleep,
  direct,
  expectFree,
  expectNothingLeft,
  namesOfScripts,
  sentAbout,
  setStage,
} from '../watched-redis.js';

// What a process has computed for two milliseconds is told from what it goes on with at once, and a busy machine may stop
// a process for longer at any place. So time passes only where a test says so.
vi.mock('../../../src/base/clock.js', async (original) => {
  const { counted } = await import('../counted-clock.js');
  const { stopped } = await import('../stopped-clock.js');
  return stopped(counted(await original()));
});

describeWithShop('a lease that nobody is known to wait for', () => {
  const stage = setStage();

  /** Whether the process still has something for this key. */
  const isKept = (actor: Actor, key: string) => !actor.room.isFree(key);

  /** Callers come until the lease of the last one, which has left, is kept. The lease of the first is given back at once. */
  async function kept(actor: Actor, key: string, asked: Asked = {}): Promise<Turn> {
    for (let callers = 0; callers < 100; callers++) {
      const turn = await actor.acquire(key, asked);
      turn.end();
      if (isKept(actor, key)) return turn;
    }
    throw new Error('no lease was kept');
  }

  /** Another process waits for the key, notes its turn and ends it at once. Resolves when it waits. */
  async function waitsFor(other: Actor, key: string, order: string[]): Promise<{ readonly served: Promise<void> }> {
    const { turn } = await asleep(other, key);
    const served = turn.then((had) => {
      order.push('other');
      had.end();
    });
    return { served };
  }

  test('is kept for the next one, and Redis is sent nothing in between', async () => {
    const [actor, key] = [direct(), someKey()];
    const { holder } = (await kept(actor, key)).lease;
    const looks = actor.store.looks.count;
    for (let turns = 0; turns < 100; turns++) {
      clock.now += 2;
      const turn = await actor.acquire(key);
      expect(turn.lease.holder).toBe(holder);
      turn.end();
    }
    await turnOfLoop();
    await actor.store.released.settled();
    const pairs = Array.from({ length: looks }, () => ['acquire', 'release']);
    expect(await sentAbout(stage(), key)).toEqual(pairs.flat());
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });

  test('is given back by the end of the turn of the event loop, if nobody comes', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, key);
    const before = actor.store.released.count;
    await turnOfLoop();
    expect(isKept(actor, key)).toBe(false);
    await actor.store.released.reach(before + 1);
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });

  test('is given back at once behind a turn in which another process may have begun to wait', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, key);
    for (const [time, keeps] of [
      [4.9, true],
      [5, false],
    ] as const) {
      const turn = await actor.acquire(key);
      clock.now += time;
      turn.end();
      expect(isKept(actor, key)).toBe(keeps);
    }
    await actor.store.released.settled();
    await expectFree(stage(), key);
  });

  test('goes to another process that waits behind the first turn that takes time, though one caller follows the other', async () => {
    const [actor, other, key] = [direct(), direct(), someKey()];
    await kept(actor, key);
    const order: string[] = [];
    const own = await actor.acquire(key);
    const { served } = await waitsFor(other, key, order);
    clock.now += 20;
    own.end();
    for (let turns = 0; turns < 3; turns++) {
      const turn = await actor.acquire(key);
      order.push('own');
      clock.now += 20;
      turn.end();
    }
    await served;
    expect(order).toEqual(['other', 'own', 'own', 'own']);
  });

  test('is given back at once by a client that is not in use, and then behind its caller, whatever the key', async () => {
    const [actor, key] = [direct(), someKey()];
    await actor.release(await actor.acquire(someKey()));
    const turn = await actor.acquire(key);
    expect(actor.store.released.count).toBe(1);
    turn.end();
    expect(isKept(actor, key)).toBe(true);
    expect(actor.store.released.count).toBe(1);
    await actor.store.released.reach(2);
    await expectFree(stage(), key);
    const first = direct();
    (await first.acquire(key)).end();
    expect(isKept(first, key)).toBe(false);
  });

  test('is not resumed by a caller that has computed since: it is given back, and taken anew', async () => {
    const [actor, key] = [direct(), someKey()];
    const { lease } = await kept(actor, key);
    clock.now += 2.1;
    const turn = await actor.acquire(key);
    expect(turn.lease.holder).not.toBe(lease.holder);
    turn.end();
    expect(isKept(actor, key)).toBe(false);
    await actor.store.released.settled();
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });

  test('is given back before somebody looks, if the room is told so', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, key);
    actor.room.releaseLingering();
    expect(isKept(actor, key)).toBe(false);
    await actor.store.released.settled();
    await expectFree(stage(), key);
  });

  test('is given back before another client of the process looks, which gets the key by its first look', async () => {
    const [actor, other, key, another] = [direct(), direct(), someKey(), someKey()];
    await other.release(await other.acquire(someKey()));
    await actor.release(await kept(actor, someKey()));
    const turn = await actor.acquire(another);
    await kept(actor, key);
    turn.end();
    const looks = other.store.looks.count;
    const taken = other.acquire(key);
    expect(isKept(actor, key)).toBe(false);
    expect(isKept(actor, another)).toBe(true);
    await other.release(await taken);
    expect(other.store.looks.count).toBe(looks + 1);
  });

  test.each([2.5, 5, 60])(
    'behind callers that keep the event loop busy for %d ms is released late once, and then at once for a hundred times as long',
    async (late) => {
      const [actor, key] = [direct(), someKey()];
      await kept(actor, key);
      clock.now += late;
      await turnOfLoop();
      const until = clock.now + 100 * late;
      for (const at of [clock.now, clock.now + 50 * late, until - 1]) {
        clock.now = at;
        await kept(actor, someKey());
        (await actor.acquire(key)).end();
        expect(isKept(actor, key)).toBe(false);
      }
      clock.now = until;
      await kept(actor, someKey());
      (await actor.acquire(key)).end();
      expect(isKept(actor, key)).toBe(true);
    },
  );

  test('of a process that stood still for longer than its lease is released at once for a hundred times the lease time', async () => {
    const [actor, key] = [direct(), someKey()];
    const { lease } = await kept(actor, key);
    clock.now += 60 * lease.leaseTime;
    await turnOfLoop();
    for (const [later, keeps] of [
      [99 * lease.leaseTime, false],
      [lease.leaseTime, true],
    ] as const) {
      clock.now += later;
      await kept(actor, someKey());
      (await actor.acquire(key)).end();
      expect(isKept(actor, key)).toBe(keeps);
    }
  });

  test('that came only a little late is kept the next time, too', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, key);
    clock.now += 2;
    await turnOfLoop();
    (await actor.acquire(key)).end();
    expect(isKept(actor, key)).toBe(true);
  });

  test('goes to another process that waits when this one has had it for as long as is allowed', async () => {
    const [actor, other, key] = [direct({ passOnAfter: 8 }), direct(), someKey()];
    // The first turn of this lease, which takes no time here.
    await kept(actor, key);
    const order: string[] = [];
    const own = await actor.acquire(key);
    const { served } = await waitsFor(other, key, order);
    order.push('own');
    clock.now += 2;
    own.end();
    for (let turns = 0; turns < 6; turns++) {
      const turn = await actor.acquire(key);
      order.push('own');
      clock.now += 3;
      turn.end();
    }
    await served;
    expect(order).toEqual(['own', 'own', 'own', 'other', 'own', 'own', 'own', 'own']);
  });

  test('goes to another process as soon as it is known to wait, which is asked before the last turns', async () => {
    const [actor, other, key] = [direct({ passOnAfter: 50 }), direct(), someKey()];
    const { holder } = (await kept(actor, key)).lease;
    let turn = await actor.acquire(key);
    const { turn: waiting } = await asleep(other, key);
    let turns = 1;
    for (turn.end(); isKept(actor, key); turn.end()) {
      turn = await actor.acquire(key);
      turns++;
      expect(turn.lease.holder).toBe(holder);
      clock.now++;
      // After half of the time it is asked.
      if (turns === 27) await eventually('it is known', async () => turn.lease.contended);
    }
    expect(turns).toBe(27);
    (await waiting).end();
    // A file that runs beside this one may list all keys.
    expect(namesOfScripts(await stage().monitor.about(key))).toContain('inspect');
  });

  /** A store that says what it is told to of other processes that wait. */
  function saying(contended: () => boolean | undefined) {
    return (store: LeaseStore): LeaseStore =>
      new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          if (name !== 'acquire') return value.bind(target) as unknown;
          return async (...given: Parameters<LeaseStore['acquire']>): Promise<AcquireResult> => {
            const answer = await target.acquire(...given);
            if (!answer.taken) return answer;
            const { contended: _, ...rest } = answer;
            const says = contended();
            return says === undefined ? rest : { ...rest, contended: says };
          };
        },
      });
  }

  test.each([true, undefined])('is given back at once where others were known to wait, or may: %s', async (says) => {
    let contended: boolean | undefined = says;
    const [actor, key] = [direct({ wrap: saying(() => contended) }), someKey()];
    for (let callers = 0; callers < 20; callers++) {
      const turn = await actor.acquire(key);
      turn.end();
      expect(isKept(actor, key)).toBe(false);
    }
    contended = false;
    await kept(actor, key);
  });

  test('that was taken while another process waited is known to be waited for, and one that was not is known not to', async () => {
    const [holder, first, second, key] = [direct(), direct(), direct(), someKey()];
    const held = await holder.acquire(key);
    expect(held.lease.contended).toBe(false);
    const { turn: next } = await asleep(first, key);
    const { turn: last } = await asleep(second, key);
    held.end();
    expect((await next).lease.contended).toBe(true);
    (await next).end();
    expect((await last).lease.contended).toBe(false);
    (await last).end();
  });

  test('is given back at once where it is that of a handle: its owner awaits that', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, someKey());
    const turn = await actor.acquire(key, { mayShare: false });
    turn.end();
    expect(isKept(actor, key)).toBe(false);
    await actor.store.released.settled();
    await expectFree(stage(), key);
  });

  test('is given back at once where a hint has promised it: another process may take it over', async () => {
    const [actor, other, key] = [direct(), direct(), someKey()];
    await kept(actor, someKey());
    const held = await other.acquire(key);
    const { turn: next } = await asleep(actor, key);
    held.end();
    const turn = await next;
    turn.hint(randomUUID());
    turn.end();
    expect([turn.lease.contended, isKept(actor, key)]).toEqual([false, false]);
    await actor.store.released.settled();
    await expectFree(stage(), key);
  });

  test("is given back at once where fairness is 'strict'", async () => {
    const [actor, key] = [direct({ fairness: 'strict' }), someKey()];
    for (let callers = 0; callers < 20; callers++) {
      const turn = await actor.acquire(key);
      turn.end();
      expect(isKept(actor, key)).toBe(false);
    }
  });

  test('is given back at once where it is not renewed, or no hand-over is allowed', async () => {
    const [actor, none, key] = [direct(), direct({ passOnAfter: 0 }), someKey()];
    for (let callers = 0; callers < 20; callers++) {
      const turn = await actor.acquire(key, { renew: false });
      turn.end();
      expect(isKept(actor, key)).toBe(false);
    }
    await actor.store.released.settled();
    for (let callers = 0; callers < 20; callers++) {
      const turn = await none.acquire(key);
      turn.end();
      expect(isKept(none, key)).toBe(false);
    }
  });

  test.each([{ leaseTime: 5_000 }, { leaseTime: 5_000, renew: false }])(
    'is not good enough for a caller that asks for another: %o',
    async (asked) => {
      const [actor, key] = [direct(), someKey()];
      await kept(actor, key);
      const turn = await actor.acquire(key, asked);
      expect(turn.lease.leaseTime).toBe(5_000);
      expect(await stage().admin.pttl(leaseName(key))).toBeLessThanOrEqual(5_000);
      await actor.release(turn);
      await expectNothingLeft(stage(), actor, key);
      await expectFree(stage(), key);
    },
  );

  test.each<[string, (actor: Actor, turn: Turn, key: string) => void]>([
    ['was lost', (_, { lease }) => lease.lose('gone')],
    ['an operator took', (actor, { lease }, key) => actor.room.markLost(key, lease.holder)],
    [
      'has ended while the process stood still',
      (_, { lease }) => {
        clock.now = lease.expiresAt;
      },
    ],
  ])('that %s meanwhile is not handed on', async (_, lose) => {
    const [actor, key] = [direct(), someKey()];
    const last = await kept(actor, key, { leaseTime: 300 });
    lose(actor, last, key);
    const turn = await actor.acquire(key, { leaseTime: 300 });
    expect(turn.lease.holder).not.toBe(last.lease.holder);
    expect(turn.lease.loss).toBeUndefined();
    expect(await holderOf(stage().admin, key)).toBe(turn.lease.holder);
    await actor.release(turn);
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });

  test('is given back before the end of who closes the room', async () => {
    const [actor, key] = [direct(), someKey()];
    await kept(actor, key);
    const closed = actor.room.close();
    expect(isKept(actor, key)).toBe(false);
    await closed;
    await expectFree(stage(), key);
  });

  test('of each key is kept by itself, and several callers that come together share what was kept', async () => {
    const [actor, one, other] = [direct(), someKey(), someKey()];
    const { lease } = await kept(actor, one);
    const turns = [actor.acquire(one), actor.acquire(other), actor.acquire(one)] as const;
    expect((await turns[0]).lease.holder).toBe(lease.holder);
    (await turns[0]).end();
    expect((await turns[2]).lease.holder).toBe(lease.holder);
    (await turns[2]).end();
    await actor.release(await turns[1]);
    await turnOfLoop();
    await actor.store.released.settled();
    await eventually('both are free', async () => (await stage().admin.exists(leaseName(one), leaseName(other))) === 0);
    expect(await stage().admin.exists(queueName(one))).toBe(0);
  });
});
