import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import type { Timer } from '../../src/base/clock.js';
import { LockTimeoutError, LockUnavailableError } from '../../src/base/errors.js';
import { LocalQueue } from '../../src/lease/queue.js';
import { namesOf } from '../../src/redis/keys.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { Monitor } from '../redis/monitor.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { gate, withoutRedis } from '../support/shop.js';
import { Actor, FOR_EVER, leaseName, PREFIX, receivers, someKey, Tally, turnOfLoop } from './actors.js';

/** The timers of src/lease that run at the moment. */
const timers = vi.hoisted(() => new Set<object>());

vi.mock('../../src/base/clock.js', async (original) => {
  const clock = await original<typeof import('../../src/base/clock.js')>();
  const after: typeof clock.after = (ms, action) => {
    const timer: Timer = clock.after(ms, () => {
      timers.delete(timer);
      action();
    });
    const counted: Timer = {
      stop: () => {
        timers.delete(timer);
        timer.stop();
      },
      unref: () => {
        // Those of a connection that lingers; what is asked here is who sleeps.
        timers.delete(timer);
        timer.unref();
        return counted;
      },
    };
    timers.add(timer);
    return counted;
  };
  return { ...clock, after };
});

describe.skipIf(withoutRedis)('acquire', () => {
  let url: string;
  let admin: Redis;
  let proxy: FaultProxy;
  let monitor: Monitor;

  beforeAll(async () => {
    url = inject('redis').url as string;
    admin = new Redis(url);
    proxy = await startFaultProxy({ host: new URL(url).hostname, port: Number(new URL(url).port) });
    monitor = await Monitor.start(url);
    // So that a command is known by the hash of its script.
    for (const { lua } of Object.values(scripts)) await admin.script('LOAD', lua);
  });
  afterEach(() => {
    // One that fails must not make the next ones fail.
    timers.clear();
    proxy.resume();
  });
  afterAll(async () => {
    monitor.stop();
    admin.disconnect();
    await proxy.close();
  });

  const direct = () => new Actor({ url });
  const throughProxy = (options = {}) => new Actor({ url: proxy.url(url), ...options });

  /** A contender that has looked twice and sleeps. */
  async function asleep(contender: Actor, key: string, options: Parameters<Actor['acquire']>[1] = {}) {
    const held = contender.acquire(key, options);
    await contender.store.answers.reach(2);
    return { held };
  }

  async function expectNothingLeft(contender: Actor, key: string): Promise<void> {
    expect(contender.queue.waiting(key)).toBe(0);
    // A place in the queue that was not given back would keep this one waiting.
    const turn = await contender.queue.enter(key, async () => {});
    expect(turn).toBeDefined();
    turn?.leave();
    await vi.waitFor(async () => expect(await receivers(admin, key)).toBe(0));
    expect(timers.size).toBe(0);
  }

  describe('look, subscribe, look again', () => {
    test('a release between the first look and the subscription is not missed', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      contender.store.beforeWatch = () => holder.release(first);
      await contender.release(await contender.acquire(key));
      expect(contender.store.looks.count).toBe(2);
    });

    test('a release while the contender sleeps wakes it', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      const { held } = await asleep(contender, key);
      await holder.release(first);
      await contender.release(await held);
      expect(contender.store.looks.count).toBe(3);
    });

    test('a release while the answer of the second look is under way is not missed', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      contender.store.beforeAnswer = async (look) => {
        if (look !== 2) return;
        // Heard by the same connection, so the contender has been told too.
        const told = gate();
        const watch = await contender.store.watch(key, told.open);
        await holder.release(first);
        await told.opened;
        watch.close();
      };
      await contender.release(await contender.acquire(key));
      expect(contender.store.looks.count).toBe(3);
    });

    test('a wake-up that is lost costs no more than the rest of the lease', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      await holder.acquire(key, { leaseTime: 400 });
      // Nobody releases it and nobody says that it ends; the contender would wait for days.
      const held = await contender.acquire(key, { waitTime: FOR_EVER });
      expect(held.lease.loss).toBeUndefined();
      await contender.release(held);
    });

    test('a key of ours that never ends is no reason to ask again and again', async () => {
      const contender = direct();
      const key = someKey();
      await admin.set(leaseName(key), 'somebody');
      const { held } = await asleep(contender, key);
      await turnOfLoop();
      expect(contender.store.looks.count).toBe(2);
      await admin.multi().del(leaseName(key)).publish(namesOf(PREFIX, key).channel, 'look').exec();
      await contender.release(await held);
    });

    test('where wake-ups cannot be heard, it looks at intervals, and says so once a time', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      const deaf = new Error('NOPERM this user has no permissions to access one of the channels');
      contender.store.beforeWatch = () => Promise.reject(deaf);
      const held = contender.acquire(key);
      await contender.store.answers.reach(2);
      await holder.release(first);
      await contender.release(await held);
      expect(contender.events[0]).toEqual({ type: 'subscriber-down', error: deaf });
    });
  });

  describe('the end of the wait', () => {
    test('a key that was not free in the wait time is a LockTimeoutError, and nothing is left', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      await expect(contender.acquire(key, { waitTime: 150 })).rejects.toBeInstanceOf(LockTimeoutError);
      await expectNothingLeft(contender, key);
      expect(await admin.get(leaseName(key))).toBe(first.lease.holder);
    });

    test('without a wait time it looks once, and takes what is free', async () => {
      const contender = direct();
      const key = someKey();
      const held = await contender.acquire(key, { waitTime: 0 });
      await expect(direct().acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
      await contender.release(held);
      expect(contender.store.looks.count).toBe(1);
    });

    test('a caller who waits in the local queue gets the LockTimeoutError too, and its place is gone', async () => {
      const actor = direct();
      const key = someKey();
      const first = await actor.acquire(key);
      await expect(actor.acquire(key, { waitTime: 50 })).rejects.toBeInstanceOf(LockTimeoutError);
      expect(actor.queue.waiting(key)).toBe(0);
      await actor.release(first);
      await expectNothingLeft(actor, key);
      expect(actor.store.looks.count).toBe(1);
    });

    test('a Redis that gives no answer is a LockUnavailableError with its cause, and nothing is left', async () => {
      const contender = throughProxy({ commandTimeout: 100 });
      const key = someKey();
      await contender.redis.ping();
      proxy.silence();
      const error = await contender.acquire(key, { waitTime: 150 }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as LockUnavailableError).cause).toMatchObject({ message: expect.stringContaining('100 ms') });
      proxy.resume();
      // Its looks reach Redis now, and the release that undoes them, which had been given up already, behind them.
      await monitor.seen((line) => line.includes(scripts.release.sha1) && line.includes(leaseName(key)));
      await vi.waitFor(async () => expect(await admin.exists(leaseName(key))).toBe(0));
      await expectNothingLeft(contender, key);
    });

    test('a Redis that comes back within the wait time is no error', async () => {
      const contender = throughProxy({ commandTimeout: 100 });
      const key = someKey();
      await contender.redis.ping();
      proxy.silence();
      const held = contender.acquire(key);
      await contender.store.answers.reach(2);
      proxy.resume();
      await contender.release(await held);
      expect(await admin.exists(leaseName(key))).toBe(0);
    });
  });

  describe("the caller's signal", () => {
    const reason = new Error('the caller went home');

    test('already aborted: nothing is sent', async () => {
      const contender = direct();
      const key = someKey();
      await expect(contender.acquire(key, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      expect(contender.store.looks.count).toBe(0);
      await expectNothingLeft(contender, key);
    });

    test('in the local queue: the call rejects with its reason, and the next caller is not held up', async () => {
      const actor = direct();
      const key = someKey();
      const first = await actor.acquire(key);
      const caller = new AbortController();
      const gone = actor.acquire(key, { signal: caller.signal });
      const next = actor.acquire(key);
      caller.abort(reason);
      await expect(gone).rejects.toBe(reason);
      await actor.release(first);
      await actor.release(await next);
      // The one who left never looked.
      expect(actor.store.looks.count).toBe(2);
      await expectNothingLeft(actor, key);
    });

    test('while a look is in flight: the call rejects at once, and the lease that Redis gives later is given back', async () => {
      const contender = throughProxy();
      const key = someKey();
      await contender.redis.ping();
      proxy.silence('toServer');
      const caller = new AbortController();
      const gone = contender.acquire(key, { signal: caller.signal });
      await contender.store.looks.reach(1);
      caller.abort(reason);
      await expect(gone).rejects.toBe(reason);
      expect(await monitor.about(key)).toEqual([]);
      proxy.resume();
      await contender.store.released.reach(1);
      expect((await monitor.about(key)).map(([, sha1]) => sha1)).toEqual([scripts.acquire.sha1, scripts.release.sha1]);
      expect(await admin.exists(leaseName(key))).toBe(0);
      await expectNothingLeft(contender, key);
    });

    test('while the reply of a look that took the lease is in flight: it is given back', async () => {
      const contender = throughProxy();
      const key = someKey();
      await contender.redis.ping();
      proxy.silence('toClient');
      const caller = new AbortController();
      const gone = contender.acquire(key, { signal: caller.signal });
      await monitor.seen((line) => line.includes(leaseName(key)));
      expect(await admin.exists(leaseName(key))).toBe(1);
      caller.abort(reason);
      await expect(gone).rejects.toBe(reason);
      proxy.resume();
      await contender.store.released.reach(1);
      expect(await admin.exists(leaseName(key))).toBe(0);
      await expectNothingLeft(contender, key);
    });

    test('while the subscription is in flight: none is left behind', async () => {
      const [holder, contender] = [direct(), throughProxy()];
      const key = someKey();
      await holder.acquire(key);
      const asked = gate();
      const remove = proxy.onData('toServer', (data) => {
        if (!data.includes('wake:')) return 'forward';
        remove();
        setImmediate(asked.open);
        return 'hold';
      });
      const caller = new AbortController();
      const gone = contender.acquire(key, { signal: caller.signal });
      await asked.opened;
      caller.abort(reason);
      await expect(gone).rejects.toBe(reason);
      proxy.resume();
      await monitor.seen(([verb, channel]) => verb === 'subscribe' && channel === namesOf(PREFIX, key).channel);
      await expectNothingLeft(contender, key);
    });

    test('asleep: the call rejects with its reason, and nothing is left', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      const caller = new AbortController();
      const { held: gone } = await asleep(contender, key, { signal: caller.signal });
      caller.abort(reason);
      await expect(gone).rejects.toBe(reason);
      await expectNothingLeft(contender, key);
      expect(await admin.get(leaseName(key))).toBe(first.lease.holder);
      expect(contender.store.looks.count).toBe(2);
    });

    test('after the lease is had the signal is not listened to any more', async () => {
      const actor = direct();
      const caller = new AbortController();
      const spy = vi.spyOn(caller.signal, 'removeEventListener');
      const added = vi.spyOn(caller.signal, 'addEventListener');
      const [holder, key] = [direct(), someKey()];
      const first = await holder.acquire(key);
      const { held } = await asleep(actor, key, { signal: caller.signal });
      await holder.release(first);
      await actor.release(await held);
      expect(added.mock.calls.length).toBeGreaterThan(0);
      expect(spy.mock.calls.map(([, listener]) => listener)).toEqual(added.mock.calls.map(([, listener]) => listener));
    });
  });

  describe('lost replies', () => {
    for (const [how, autoResendUnfulfilledCommands, commandTimeout] of [
      ['the client resends it after the reconnect', true, 600_000],
      ['the client forgets it', false, 200],
    ] as const) {
      test(`an acquire whose reply is cut off ends up holding once, under one holder (${how})`, async () => {
        const contender = throughProxy({ redis: { autoResendUnfulfilledCommands }, commandTimeout });
        const key = someKey();
        await contender.redis.ping();
        const remove = proxy.onData('toServer', (data) => {
          if (!data.includes(leaseName(key))) return 'forward';
          remove();
          return 'cut-after';
        });
        const { lease, turn } = await contender.acquire(key, { holder: 'the-one' });
        expect(lease.loss).toBeUndefined();
        const sent = await monitor.about(key);
        expect(sent.filter(([, sha1]) => sha1 === scripts.acquire.sha1)).toHaveLength(2);
        expect(sent.every((line) => line.includes('the-one'))).toBe(true);
        expect(await admin.get(leaseName(key))).toBe('the-one');
        // One lease: whoever comes next is refused, and one release is enough.
        await expect(direct().acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
        await contender.release({ lease, turn });
        expect(await admin.exists(leaseName(key))).toBe(0);
      });
    }

    test('a lease whose reply came after its end is not believed', async () => {
      const contender = throughProxy();
      const key = someKey();
      await contender.redis.ping();
      proxy.silence('toClient');
      const held = contender.acquire(key, { leaseTime: 100 });
      await monitor.seen((line) => line.includes(leaseName(key)));
      await vi.waitFor(async () => expect(await admin.exists(leaseName(key))).toBe(0));
      proxy.resume();
      const { lease, turn } = await held;
      expect(contender.store.looks.count).toBeGreaterThan(1);
      await contender.release({ lease, turn });
    });
  });

  describe('the local queue', () => {
    test('callers of one process get the lease in the order in which they came', async () => {
      const [holder, actor] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      const order: number[] = [];
      const callers = Array.from({ length: 20 }, async (_, index) => {
        const held = await actor.acquire(key);
        order.push(index);
        await actor.release(held);
      });
      await actor.store.answers.reach(2);
      await holder.release(first);
      await Promise.all(callers);
      expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index));
    });

    test('a caller that gives up at the very moment it is called passes the turn on', async () => {
      const queue = new LocalQueue();
      const first = await queue.enter('stock:1', async () => {});
      const leaving = gate();
      const gone = queue.enter('stock:1', () => leaving.opened);
      const next = queue.enter('stock:1', () => gate().opened);
      leaving.open();
      first?.leave();
      expect(await gone).toBeUndefined();
      (await next)?.leave();
      expect(await queue.enter('stock:1', async () => {})).toBeDefined();
    });

    test('leaving twice calls one caller, not two', async () => {
      const queue = new LocalQueue();
      const first = await queue.enter('stock:1', async () => {});
      const second = queue.enter('stock:1', () => gate().opened);
      void queue.enter('stock:1', () => gate().opened);
      first?.leave();
      first?.leave();
      await second;
      await turnOfLoop();
      expect(queue.waiting('stock:1')).toBe(1);
    });

    test('a contender that fails lets the next caller of its process go on', async () => {
      const actor = direct();
      const [holder, key] = [direct(), someKey()];
      const first = await holder.acquire(key);
      const failing = actor.acquire(key, { waitTime: 100 });
      const next = actor.acquire(key);
      await expect(failing).rejects.toBeInstanceOf(LockTimeoutError);
      await holder.release(first);
      await actor.release(await next);
    });

    test('300 callers of one process wait for one key and send Redis nothing: one of them looks, twice', async () => {
      const [holder, actor] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      const before = (await monitor.about(key)).length;
      const held = new Tally();
      const callers = Array.from({ length: 300 }, async () => {
        const mine = await actor.acquire(key);
        held.add();
        await actor.release(mine);
      });
      await actor.store.answers.reach(2);
      expect(actor.queue.waiting(key)).toBe(299);
      // What polls gives no event: it needs some time in which to be seen.
      await new Promise((resolve) => setTimeout(resolve, 700));
      const sent = (await monitor.about(key)).slice(before);
      expect(sent.map(([verb, first]) => (verb === 'evalsha' ? first : verb))).toEqual([
        scripts.acquire.sha1,
        'subscribe',
        scripts.acquire.sha1,
      ]);
      expect(held.count).toBe(0);
      await holder.release(first);
      await Promise.all(callers);
      expect(held.count).toBe(300);
      await expectNothingLeft(actor, key);
      expect(await admin.exists(leaseName(key))).toBe(0);
    });
  });

  test('a look whose script the server had forgotten does not overtake the release that undoes it', async () => {
    // The server knows the release and not the acquire: the look is sent a second time, with its text.
    const contender = throughProxy({ redis: { keyPrefix: 'app:' } });
    const key = someKey();
    await contender.redis.ping();
    const unknown = vi.spyOn(contender.redis, 'evalsha').mockImplementationOnce((...args) => {
      unknown.mockRestore();
      return contender.redis.evalsha('0'.repeat(40), ...(args.slice(1) as [number]));
    });
    proxy.silence('toServer');
    const caller = new AbortController();
    const gone = contender.acquire(key, { signal: caller.signal });
    await contender.store.looks.reach(1);
    caller.abort('enough');
    await expect(gone).rejects.toBe('enough');
    proxy.resume();
    await contender.store.released.reach(1);
    expect((await monitor.about(key)).map(([verb]) => verb)).toEqual(['evalsha', 'eval', 'evalsha']);
    expect(await admin.exists(`app:${leaseName(key)}`)).toBe(0);
  });
});
