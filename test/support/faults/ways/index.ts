import { setTimeout as sleep } from 'node:timers/promises';
import type { HandedOver } from '../messages.js';
import type { Work } from '../turn.js';
import { type Clients, type LockingClient, plainClient } from './client.js';
import { handle } from './handle.js';
import { plainRedisLock } from './plain-redis-lock.js';
import { type Errand, NotAcquired, type Way } from './way.js';

type HandOver = (given: HandedOver) => void;

/** A way of one call. */
const call = (mostKeys: number, attempt: (errand: Errand, work: Work) => Promise<unknown>): Way => ({
  mostKeys,
  run: (errand) => errand.operate((work) => attempt(errand, work)),
});

const withLock = (prisma: LockingClient, mostKeys = 1): Way =>
  call(mostKeys, ({ keys, leaseTime }, work) =>
    prisma.$withLock(keys, (tx, { token }) => work(tx, token), { leaseTime }),
  );

const tryWithLock = (prisma: LockingClient): Way =>
  call(2, async ({ keys, leaseTime }, work) => {
    const { acquired } = await prisma.$tryWithLock(keys, (tx, { token }) => work(tx, token), { leaseTime });
    if (!acquired) throw new NotAcquired();
  });

/** How often an inner call fails, and its error is caught. */
const CAUGHT = 0.1;

/** All of it was to be rolled back, and `$withLock` has resolved: told as an error, so that what is there shows. */
class Resolved extends Error {
  readonly code = 'RESOLVED_ALTHOUGH_DOOMED';
}

/** Each key's part in an inner call, all in the transaction of the outer one. */
const joined = (prisma: LockingClient): Way =>
  call(2, async ({ keys, leaseTime, random }, work) => {
    const isDoomed = random.next() < CAUGHT;
    await prisma.$withLock(
      keys,
      async () => {
        for (const key of keys) await prisma.$withLock(key, (tx, { token }) => work(tx, token, key));
        if (isDoomed) await prisma.$withLock(keys, () => Promise.reject(new Error('to be caught'))).catch(() => {});
      },
      { leaseTime },
    );
    if (isDoomed) throw new Resolved();
  });

/** About as long as a turn takes, so that the end comes at each of its steps; milliseconds. */
const LATEST = 60;
/** How often the function stands still. It keeps the key from all others meanwhile. */
const STANDS_STILL = 0.25;

class ByCaller extends Error {
  readonly code = 'ABORTED_BY_CALLER';
}

/** The caller's own signal ends the call: while it waits, while it works, or at COMMIT. */
const aborted = (prisma: LockingClient): Way =>
  call(2, async ({ keys, leaseTime, random }, work) => {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new ByCaller()), random.whole(0, LATEST));
    const options = { leaseTime, signal: controller.signal };
    try {
      await prisma.$withLock(keys, (tx, { token }) => work(tx, token), options);
    } finally {
      clearTimeout(timer);
    }
  });

/** The work may take less than it needs. */
const overdue = (prisma: LockingClient): Way =>
  call(2, ({ keys, leaseTime, random }, work) => {
    const options = { leaseTime, timeout: random.whole(1, LATEST) };
    return prisma.$withLock(keys, (tx, { token }) => work(tx, token), options);
  });

/** The function stands still until its lease has ended, which nobody renews, and then writes. */
const unrenewed = (prisma: LockingClient): Way =>
  call(1, ({ keys, leaseTime, random }, work) => {
    const pause = random.next() < STANDS_STILL ? leaseTime + random.whole(-20, 200) : 0;
    const still = async () => void (pause > 0 && (await sleep(pause)));
    const options = { leaseTime, renew: false };
    return prisma.$withLock(keys, (tx, { token }) => still().then(() => work(tx, token)), options);
  });

/** The ways of the package. */
const WAYS = {
  $withLock: (clients: Clients) => withLock(clients.get('standard')),
  '$withLock of several keys': (clients: Clients) => withLock(clients.get('standard'), 3),
  '$withLock, joined': (clients: Clients) => joined(clients.get('standard')),
  "$withLock, onRedisUnavailable: 'postgres'": (clients: Clients) =>
    withLock(clients.get('on Postgres alone if need be'), 2),
  $tryWithLock: (clients: Clients) => tryWithLock(clients.get('standard')),
  $lock: (clients: Clients) => handle(clients.get('standard')),
  '$lock, handed over': (clients: Clients, handOver: HandOver) => handle(clients.get('standard'), handOver),
} as const satisfies Record<string, (clients: Clients, handOver: HandOver) => Way>;

/** Those that end early: by their own signal, by their timeout, or because their lease is not renewed. */
const EARLY = {
  '$withLock, aborted by its caller': (clients: Clients) => aborted(clients.get('standard')),
  '$withLock, past its timeout': (clients: Clients) => overdue(clients.get('standard')),
  '$withLock, past its lease': (clients: Clients) => unrenewed(clients.get('standard')),
} as const satisfies Record<string, (clients: Clients) => Way>;

/** For the controls: one without its row conditions, and one without the package. */
const CONTROLS = {
  '$withLock, nothing fenced': (clients: Clients) => withLock(clients.get('nothing fenced')),
  'plain Redis lock': (clients: Clients) => plainRedisLock(clients.site, plainClient(clients.site)),
} as const satisfies Record<string, (clients: Clients) => Way>;

export type WayName = keyof typeof WAYS | keyof typeof EARLY | keyof typeof CONTROLS;

export const WAYS_OF_THE_PACKAGE = Object.keys(WAYS) as readonly WayName[];

/** For one process: these, and those that end early. */
export const WAYS_IN_MEMORY = Object.keys({ ...WAYS, ...EARLY }) as readonly WayName[];

export function openWay(name: WayName, clients: Clients, handOver: HandOver): Way {
  return { ...WAYS, ...EARLY, ...CONTROLS }[name](clients, handOver);
}
