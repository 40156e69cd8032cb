import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { Lease } from '../../src/waiting/lease.js';
import { describeWithShop } from '../support/shop.js';
import { Actor, leaseName, someKey } from './actors.js';

describeWithShop('a lease whose time was over', () => {
  test('is not extended, though Redis was still generous', async () => {
    const url = inject('redis').url as string;
    const holder = new Actor({ url });
    const admin = new Redis(url);
    const take = async (leaseTime: number) => {
      const lease = new Lease({ key: someKey(), holder: randomUUID(), leaseTime }, now());
      await holder.store.acquire(lease);
      holder.renewal.add(lease, true);
      return lease;
    };
    const [late, other] = [await take(1_500), await take(3_000)];
    await admin.pexpire(leaseName(late.key), 60_000);
    // The process stands still.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_600);
    await holder.store.extended.reach(1);
    expect(late.loss).toMatchObject({ reason: 'expired' });
    expect(new Set(holder.store.extensions.flatMap(({ claims }) => claims))).toEqual(new Set([other]));
    admin.disconnect();
  });
});
