import { expect, test } from 'vitest';
import type { FencedLockEvent } from '../../../src/base/events.js';
import { admittedBehind, unconfirmedLease } from '../../../src/lease/queue/unconfirmed-lease.js';
import type { Releases } from '../../../src/lease/releases.js';
import type { AcquireResult, LeaseStore } from '../../../src/lease/store.js';
import { claimOf } from '../claims.js';

const TAKEN: AcquireResult = { taken: true, contended: false };
const DENIED: AcquireResult = { taken: false, expiresIn: 1_000, holder: 'another' };

/** A lease behind a former holder, and a store that gives these answers: the first to the look that was under way. */
function begin({ answers: [first, ...others] = [] as readonly (AcquireResult | Error)[], namesFormer = true }) {
  const asked: (string | undefined)[] = [];
  const events: FencedLockEvent[] = [];
  const releasedAgain: string[] = [];
  const given = async (answer: AcquireResult | Error = TAKEN) => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const store = {
    acquire: (_, look) => {
      asked.push(look?.former);
      return given(others.shift());
    },
  } as Pick<LeaseStore, 'acquire'> as LeaseStore;
  const releases = { sendAgain: (holder: string) => void releasedAgain.push(holder) } as Releases;
  const look = { sentAt: performance.now(), answer: given(first), namesFormer };
  const emit = (event: FencedLockEvent) => void events.push(event);
  const lease = unconfirmedLease(claimOf('stock:1'), 'former', look, { store, emit, releases });
  return { lease, asked, events, releasedAgain };
}

test('a look that names the former holder and takes the lease confirms it', async () => {
  const { lease, asked, releasedAgain } = begin({ answers: [TAKEN] });
  expect(lease).toMatchObject({ wasElsewhere: true, contended: true, loss: undefined });
  await lease.confirming;
  expect(lease).toMatchObject({ confirming: undefined, contended: false, shared: false, loss: undefined });
  expect([asked, releasedAgain]).toEqual([[], [lease.holder]]);
});

test('a lease that was taken without the store is shared', async () => {
  const { lease } = begin({ answers: [{ taken: true, shared: new Error('Redis is away') }] });
  await lease.confirming;
  expect(lease.shared).toBe(true);
});

test('only a look that names the former holder decides that another one has the key', async () => {
  const first = begin({ answers: [DENIED, TAKEN], namesFormer: false });
  await first.lease.confirming;
  expect([first.lease.loss, first.asked]).toEqual([undefined, ['former']]);
  const second = begin({ answers: [DENIED, DENIED], namesFormer: false });
  await second.lease.confirming;
  expect([second.lease.loss?.reason, second.asked]).toEqual(['gone', ['former']]);
  const named = begin({ answers: [DENIED] });
  await named.lease.confirming;
  expect([named.lease.loss?.reason, named.asked]).toEqual(['gone', []]);
});

test('a look that fails is reported and repeated until the store answers', async () => {
  const [one, another] = [new Error('one'), new Error('another')];
  const { lease, asked, events } = begin({ answers: [one, another, TAKEN] });
  await lease.confirming;
  expect(asked).toEqual(['former', 'former']);
  expect(events).toEqual([one, another].map((error) => ({ type: 'look-failed', key: 'stock:1', error })));
});

test('a lease that is over is not asked for again', async () => {
  const { lease, asked, events } = begin({ answers: [new Error('away')] });
  lease.end();
  await lease.confirming;
  expect([asked, events, lease.confirming]).toEqual([[], [], undefined]);
});

test('the former holder is known only where Postgres tells it before the look is answered', async () => {
  const never = new Promise<never>(() => {});
  const preopen = { open: () => {}, discard: () => {}, former: 'former' };
  const [admitted, refused] = [Promise.resolve(), Promise.reject(new Error('refused'))];
  expect(await admittedBehind(never, { ...preopen, admitting: admitted })).toBe('former');
  expect(await admittedBehind(never, { ...preopen, former: undefined, admitting: admitted })).toBeUndefined();
  expect(await admittedBehind(never, { ...preopen, admitting: refused })).toBeUndefined();
  expect(await admittedBehind(Promise.resolve(), { ...preopen, admitting: never })).toBeUndefined();
});
