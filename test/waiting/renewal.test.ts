import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { LockLostError } from '../../src/base/errors.js';
import { Lease } from '../../src/waiting/lease.js';
import { Renewal } from '../../src/waiting/renewal.js';
import type { LeaseStore } from '../../src/waiting/store.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { describeWithShop } from '../support/shop.js';
import { Actor, holderOf, leaseName, someKey, Tally, turnOfLoop } from './actors.js';

/** A holder whose leases are had without waiting. */
class Holder extends Actor {
  /** Nobody watches over it yet. */
  async lease(leaseTime: number, renew = true): Promise<Lease> {
    const claim = { key: someKey(), holder: randomUUID(), leaseTime };
    const sentAt = now();
    expect(await this.store.acquire(claim)).toMatchObject({ taken: true });
    return new Lease(claim, sentAt, { renew });
  }

  async take(leaseTime: number, { renew = true, beat = () => {} } = {}): Promise<Lease> {
    const lease = await this.lease(leaseTime, renew);
    lease.attach({ lost: () => {}, beat });
    this.renewal.add(lease);
    return lease;
  }
}

/** Calls `lost` at its loss. */
function onLoss(lease: Lease, lost: (loss: LockLostError) => void): void {
  lease.attach({ lost, beat: () => {} });
}

/** Resolves with the loss, which may have come already. */
function lossOf(lease: Lease): Promise<LockLostError> {
  return new Promise((resolve) => {
    if (lease.loss) resolve(lease.loss);
    else onLoss(lease, resolve);
  });
}

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown) => void unhandled.push(reason);
beforeEach(() => void process.on('unhandledRejection', onUnhandled));
afterEach(async () => {
  await turnOfLoop();
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled.splice(0)).toEqual([]);
});

describeWithShop('renewal', () => {
  let url: string;
  let admin: Redis;
  let proxy: FaultProxy;
  beforeAll(async () => {
    url = inject('redis').url as string;
    admin = new Redis(url);
    proxy = await startFaultProxy({ host: new URL(url).hostname, port: Number(new URL(url).port) });
  });
  afterAll(async () => {
    admin.disconnect();
    await proxy.close();
  });

  test('a lease is extended at a third of its time, again and again, and outlives its time', async () => {
    const holder = new Holder({ url });
    const takenAt = now();
    const lease = await holder.take(1_500);
    const first = lease.expiresAt;
    await holder.store.extending.reach(1);
    // "Nearly due" is a thirtieth early at most.
    expect(now() - takenAt).toBeGreaterThanOrEqual(1_500 * (1 / 3 - 1 / 30) - 1);
    expect(lease.loss).toBeUndefined();
    await holder.store.extended.reach(4);
    expect(now()).toBeGreaterThan(first);
    expect(lease.loss).toBeUndefined();
    expect(lease.expiresAt).toBeGreaterThan(first);
    expect(await holderOf(admin, lease.key)).toBe(lease.holder);
    expect(holder.store.extensions.flatMap(({ answers }) => answers)).toEqual(Array(4).fill('extended'));
  });

  test('a renewal is a beat, whatever its outcome, and none comes after the lease is given back', async () => {
    const holder = new Holder({ url });
    let beats = 0;
    const lease = await holder.take(1_200, { beat: () => beats++ });
    await holder.store.extended.reach(2);
    expect(beats).toBe(2);
    holder.renewal.remove(lease);
    const other = await holder.take(1_200);
    await holder.store.extended.reach(4);
    expect(beats).toBe(2);
    expect(holder.store.extensions.slice(2).flatMap(({ claims }) => claims)).toEqual([other, other]);
  });

  test('many leases are extended by one timer, together', async () => {
    const holder = new Holder({ url });
    const leases = await Promise.all(Array.from({ length: 50 }, () => holder.lease(60_000)));
    // The same moment for all: as if they had been taken a third of their time ago.
    const takenAt = now() - 20_000;
    for (const lease of leases) holder.renewal.add(new Lease(lease, takenAt));
    await holder.store.extended.reach(1);
    expect(holder.store.extensions.map(({ answers }) => answers)).toEqual([Array(50).fill('extended')]);
  });

  test('leases that are nearly due go along with the first that is due', async () => {
    const holder = new Holder({ url });
    const [first, second] = [await holder.lease(60_000), await holder.lease(60_000)];
    const dueNow = now() - 20_000;
    holder.renewal.add(new Lease(first, dueNow + 1_500));
    holder.renewal.add(new Lease(second, dueNow));
    await holder.store.extended.reach(1);
    expect(holder.store.extensions[0]?.claims.map(({ key }) => key)).toEqual([first.key, second.key]);
  });

  test("lost, 'gone': somebody else has the key", async () => {
    const holder = new Holder({ url });
    const [lease, bystander] = [await holder.take(1_200), await holder.take(1_200)];
    await admin.set(leaseName(lease.key), 'somebody else', 'PX', 60_000);
    const loss = await lossOf(lease);
    expect(loss).toBeInstanceOf(LockLostError);
    expect(loss).toMatchObject({ code: 'LOCK_LOST', reason: 'gone', key: lease.key });
    expect(await holderOf(admin, lease.key)).toBe('somebody else');
    expect(bystander.loss).toBeUndefined();
  });

  test('lost stays lost: it is never extended or taken again, and is told once', async () => {
    const holder = new Holder({ url });
    const lease = await holder.take(300);
    let told = 0;
    onLoss(lease, () => told++);
    await admin.del(leaseName(lease.key));
    const loss = await lossOf(lease);
    // Even if it were there again.
    await admin.set(leaseName(lease.key), lease.holder, 'PX', 60_000);
    const before = holder.store.extended.count;
    const other = await holder.take(1_200);
    await holder.store.extended.reach(before + 2);
    expect(holder.store.extensions.slice(before).flatMap(({ claims }) => claims)).toEqual([other, other]);
    lease.extended(now());
    lease.lose('expired');
    expect(lease.loss).toBe(loss);
    expect(told).toBe(1);
  });

  test('a lease without renewal ends by itself, and Redis was asked nothing', async () => {
    const holder = new Holder({ url });
    const lease = await holder.take(200, { renew: false });
    const loss = await lossOf(lease);
    expect(loss).toMatchObject({ reason: 'expired' });
    expect(now()).toBeGreaterThanOrEqual(lease.expiresAt);
    expect(holder.store.extending.count).toBe(0);
  });

  test('after a stop of the process the lease is lost at the first look at it, before any timer', async () => {
    const holder = new Holder({ url });
    const lease = await holder.take(200);
    let told = 0;
    onLoss(lease, () => told++);
    stopFor(250);
    expect(told).toBe(0);
    expect(lease.loss).toMatchObject({ reason: 'expired' });
    expect(told).toBe(1);
    await turnOfLoop();
    expect(told).toBe(1);
  });

  test('an extension whose answer comes after the end of the lease does not bring it back', async () => {
    const holder = new Holder({ url });
    const lease = await holder.take(900);
    await holder.store.extending.reach(1);
    // Redis extends it, and the answer lies in the socket while this process stands still.
    stopFor(1_000);
    await holder.store.extended.reach(1);
    expect(holder.store.extensions[0]?.answers).toEqual(['extended']);
    expect(lease.loss).toMatchObject({ reason: 'expired' });
  });

  test('the lease counts from when its extension was sent, not from its answer', async () => {
    const holder = new Holder({ url: proxy.url(url) });
    const lease = await holder.take(3_000);
    proxy.latency(150);
    await holder.store.extending.reach(1);
    const sentAt = now();
    await holder.store.extended.reach(1);
    expect(now() - sentAt).toBeGreaterThan(250);
    expect(lease.expiresAt).toBeLessThanOrEqual(sentAt + 3_000);
    proxy.latency(0);
  });
});

describeWithRedis('renewal without Redis', (redis) => {
  const frozen = () => new Holder({ url: redis().url, commandTimeout: 500 });

  test('uncertain: a Redis that is silent and comes back before the end costs nothing', async () => {
    const holder = frozen();
    const lease = await holder.take(9_000);
    redis().freeze();
    // Two renewals in vain, at 1/3 of the time and 1/12 after that.
    await holder.store.extended.reach(2);
    redis().thaw();
    await holder.store.extended.reach(3);
    const answers = holder.store.extensions.map((extension) => extension.answers[0]);
    expect(answers.slice(0, 2)).toEqual([expect.any(Error), expect.any(Error)]);
    expect(answers[2]).toBe('extended');
    expect(lease.loss).toBeUndefined();
    const admin = new Redis(redis().url);
    expect(await holderOf(admin, lease.key)).toBe(lease.holder);
    admin.disconnect();
  });

  test("lost, 'expired': a Redis that is silent past the end, with its error as the cause", async () => {
    const holder = frozen();
    // Long enough for an extension to time out before the end, on a busy machine too.
    const lease = await holder.take(5_000);
    redis().freeze();
    const loss = await lossOf(lease);
    redis().thaw();
    expect(loss).toMatchObject({ reason: 'expired', cause: { message: expect.stringContaining('500 ms') } });
    expect(loss.message).toMatch(
      /was not renewed in time: it did not answer a command within 500 ms.*\. If a transaction/,
    );
    expect(now()).toBeGreaterThanOrEqual(lease.expiresAt);
    // What it says afterwards changes nothing.
    await holder.redis.ping();
    expect(lease.loss).toBe(loss);
  });

  test("lost, 'gone': the data of Redis was flushed", async () => {
    const holder = new Holder({ url: redis().url });
    const lease = await holder.take(300);
    const admin = new Redis(redis().url);
    await admin.flushall();
    expect(await lossOf(lease)).toMatchObject({ reason: 'gone' });
    expect(await admin.dbsize()).toBe(0);
    admin.disconnect();
  });

  test("lost, 'gone': Redis was killed and came back empty, without its scripts", async () => {
    const holder = new Holder({ url: redis().url });
    const lease = await holder.take(20_000);
    await redis().killHard();
    await redis().start();
    // Brought forward: the renewal of this one would take seconds to come.
    holder.renewal.add(new Lease(lease, now() - 20_000 / 3));
    await holder.store.extended.reach(1);
    expect(holder.store.extensions[0]?.answers).toEqual(['gone']);
  });
});

describe('renewal by the clock alone', () => {
  const claim = () => ({ key: someKey(), holder: randomUUID(), leaseTime: 100 });
  const storeThat = (extend: LeaseStore['extend']) => ({ extend }) as LeaseStore;

  test('a lease whose time is over is lost as soon as it is watched', async () => {
    const renewal = new Renewal(storeThat(async (claims) => claims.map(() => 'extended')));
    const lease = new Lease(claim(), now() - 200);
    renewal.add(lease);
    expect(await lossOf(lease)).toMatchObject({ reason: 'expired' });
  });

  test('an answer that comes late, but before the overdue timer, does not bring the lease back', async () => {
    const answered = new Tally();
    const renewal = new Renewal(
      storeThat(async (claims) => {
        // Past the end of the lease, and not past the end that the extension would give it.
        stopFor(750);
        answered.add();
        return claims.map(() => 'extended');
      }),
    );
    const lease = new Lease({ ...claim(), leaseTime: 900 }, now());
    renewal.add(lease);
    await answered.reach(1);
    expect(lease.loss).toMatchObject({ reason: 'expired' });
    renewal.close();
  });
});

/** Nothing runs meanwhile: no timer, no answer. */
function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
