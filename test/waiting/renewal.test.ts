import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { LockLostError } from '../../src/base/errors.js';
import { Lease } from '../../src/waiting/lease.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { describeWithShop } from '../support/shop.js';
import { Actor, holderOf, leaseName, someKey, turnOfLoop } from './actors.js';

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
});

/** Nothing runs meanwhile: no timer, no answer. */
function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
