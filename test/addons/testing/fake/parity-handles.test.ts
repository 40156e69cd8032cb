import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fakeLocks } from '../../../../src/addons/testing/index.js';
import type { HandleState, LockHandle } from '../../../../src/index.js';
import { eventually, untilHolds } from '../../../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../../../support/shop.js';
import { mocks, outcomeOf, toldBy } from './both.js';

/** What it tells is compared. `resumeWaits`: until a `$resumeLock` waits for the transaction of the old handle. */
type Script = (prisma: ShopClient, key: string, resumeWaits: () => Promise<unknown>) => Promise<unknown>;

/** As another process gets it. */
const stateOf = (handle: { toJSON(): HandleState }): HandleState => JSON.parse(JSON.stringify(handle));
const mine = () => AbortSignal.abort(new RangeError('mine'));
/** What the types refuse. */
const wrong = <T>(value: unknown) => value as T;
/** Long enough for a call of a fake to wait where it has to. */
const aMoment = () => sleep(10);

/** Begins a transaction of the handle that waits for `end`. */
async function working(handle: Pick<LockHandle<unknown>, '$transaction'>) {
  const [inside, end] = [gate(), gate()];
  const told = toldBy(
    handle.$transaction(async () => {
      inside.open();
      await end.opened;
      return 'worked';
    }),
  );
  await inside.opened;
  return { told, end: end.open };
}

/** Closes the locks while a call works, which keeps them closing until `end`. */
async function closing(prisma: ShopClient, key: string) {
  const [inside, end] = [gate(), gate()];
  const works = prisma.$withLock(`${key}:works`, async () => {
    inside.open();
    await end.opened;
  });
  await inside.opened;
  const closed = prisma.$locks.close();
  return async () => {
    end.open();
    await Promise.all([works, closed]);
  };
}

/** Runs each script on the fake and on servers, and compares what both tell with what is expected. */
function compare(scripts: Readonly<Record<string, readonly [unknown, Script]>>): void {
  const shop = new Shop();
  const { prisma } = shop.client();
  test.each(Object.entries(scripts))('%s', async (_, [expected, script]) => {
    const key = `handle:${randomUUID()}`;
    expect(await script(prisma, key, () => shop.blocked('fenced_lock.admit'))).toEqual(expected);
    expect(await script(fakeLocks<ShopClient>(mocks()).prisma, key, aMoment)).toEqual(expected);
  });
}

describeWithShop('the same on the fake and on real servers: a transaction of a handle', () => {
  compare({
    'behind another one rejects when its wait time is over': [
      ['LOCK_TIMEOUT', 'LOCK_TIMEOUT', { value: 'worked' }, { value: 3 }],
      async (prisma, key) => {
        await using handle = await prisma.$lock(key);
        const { told, end } = await working(handle);
        const late = await toldBy(handle.$transaction(() => 1, { waitTime: 50 }));
        const atOnce = await toldBy(handle.$transaction(() => 2, { waitTime: 0 }));
        const third = toldBy(handle.$transaction(() => 3));
        end();
        return [late, atOnce, await told, await third];
      },
    ],
    'behind another one rejects when its signal aborts': [
      ['RangeError: mine', 'RangeError: mine', { value: 'worked' }],
      async (prisma, key) => {
        await using handle = await prisma.$lock(key);
        const { told, end } = await working(handle);
        const abort = new AbortController();
        const waits = toldBy(handle.$transaction(() => 1, { signal: abort.signal }));
        abort.abort(new RangeError('mine'));
        const aborted = await toldBy(handle.$transaction(() => 2, { signal: mine() }));
        const reason = await waits;
        end();
        return [reason, aborted, await told];
      },
    ],
    'without another one does not wait': [
      { value: 1 },
      async (prisma, key) => {
        await using handle = await prisma.$lock(key);
        return await toldBy(handle.$transaction(() => 1, { waitTime: 0 }));
      },
    ],
    'behind another one rejects when the lease is lost': [
      ['LOCK_LOST gone', 'LOCK_LOST gone', 'CLOSED'],
      async (prisma, key) => {
        const handle = await prisma.$lock(key);
        const inside = gate();
        const ended = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
            inside.open();
          });
        const first = toldBy(handle.$transaction(ended));
        const second = toldBy(handle.$transaction(() => 2));
        await inside.opened;
        await prisma.$locks.forceRelease(key);
        const third = await toldBy(handle.$transaction(() => 3));
        // A real one is told by the end of its connection, a fake one by the lease.
        await first;
        const told = [await second, third];
        await handle.release();
        return [...told, await toldBy(handle.$transaction(() => 4))];
      },
    ],
  });
});

describeWithShop('the same on the fake and on real servers: a call of several keys', () => {
  compare({
    'that loses one while it waits for another one rejects at once, and gives all back': [
      ['LOCK_LOST gone', 'LOCK_LOST gone', { value: 'next' }],
      async (prisma, key) => {
        await using other = await prisma.$lock(`${key}:2`);
        const told: unknown[] = [];
        for (const call of [() => prisma.$withLock([key, other.key], () => {}), () => prisma.$lock([key, other.key])]) {
          const waits = toldBy(call());
          await untilHolds(async () => expect((await prisma.$locks.inspect(key)).holder).toBeDefined());
          await prisma.$locks.forceRelease(key);
          told.push(await waits);
        }
        return [...told, await toldBy(prisma.$withLock(key, () => 'next'))];
      },
    ],
  });
});

describeWithShop('the same on the fake and on real servers: $resumeLock', () => {
  compare({
    'takes over what the old handle has, which learns of it': [
      [{ value: 'new' }, 'LOCK_LOST gone', ['LOCK_LOST', 'gone', 0], true],
      async (prisma, key) => {
        const old = await prisma.$lock([key, `${key}:2`]);
        await using resumed = await prisma.$resumeLock(stateOf(old));
        const { code, reason } = old.signal.reason;
        const told = [
          await toldBy(resumed.$transaction(() => 'new')),
          await toldBy(old.$transaction(() => 'old')),
          [code, reason, old.remaining()],
          resumed.token === old.token && resumed.toJSON().tokens.join() === old.toJSON().tokens.join(),
        ];
        await old.release();
        return told;
      },
    ],
    'waits for the transaction of the old handle': [
      [{ value: 'worked' }, { value: 'new' }],
      async (prisma, key, resumeWaits) => {
        const old = await prisma.$lock(key);
        const { told, end } = await working(old);
        const resuming = prisma.$resumeLock(stateOf(old));
        await resumeWaits();
        end();
        await using resumed = await resuming;
        return [await told, await toldBy(resumed.$transaction(() => 'new'))];
      },
    ],
    'does not wait for ever, and the old handle lives on': [
      ['LOCK_TIMEOUT', 'RangeError: mine', 'RangeError: mine', { value: 'worked' }, { value: 'old' }],
      async (prisma, key, resumeWaits) => {
        await using old = await prisma.$lock(key);
        const { told, end } = await working(old);
        const late = await toldBy(prisma.$resumeLock(stateOf(old), { waitTime: 300 }));
        const abort = new AbortController();
        const waits = toldBy(prisma.$resumeLock(stateOf(old), { signal: abort.signal }));
        await resumeWaits();
        abort.abort(new RangeError('mine'));
        const aborted = await toldBy(prisma.$resumeLock(stateOf(old), { signal: mine() }));
        const reason = await waits;
        end();
        return [late, reason, aborted, await told, await toldBy(old.$transaction(() => 'old'))];
      },
    ],
    'of a handle that has ended': [
      ['LOCK_LOST gone', 'LOCK_LOST gone', 'STALE_TOKEN superseded', 'STALE_TOKEN superseded'],
      async (prisma, key) => {
        const released = await prisma.$lock(key);
        await released.release();
        await untilHolds(async () => expect((await prisma.$locks.inspect(key)).holder).toBeUndefined());
        const told = [await toldBy(prisma.$resumeLock(stateOf(released)))];
        told.push(await toldBy(prisma.$resumeLock(stateOf(released))));
        await prisma.$withLock(key, () => {});
        told.push(await toldBy(prisma.$resumeLock(stateOf(released))));
        const forced = await prisma.$lock(key);
        await prisma.$locks.forceRelease(key);
        return [...told, await toldBy(prisma.$resumeLock(stateOf(forced)))];
      },
    ],
    'of a state that was resumed before, or that nobody knows': [
      ['STALE_TOKEN superseded', { value: 'new' }, 'STALE_TOKEN forgotten'],
      async (prisma, key) => {
        const state = stateOf(await prisma.$lock(key));
        await using resumed = await prisma.$resumeLock(state);
        const again = await toldBy(prisma.$resumeLock(state));
        const lives = await toldBy(resumed.$transaction(() => 'new'));
        return [again, lives, await toldBy(prisma.$resumeLock({ ...state, keys: [`${key}:unknown`] }))];
      },
    ],
    'inside a lock': [
      ['REENTRY', 'NESTED', { value: 'resumed' }],
      async (prisma, key) => {
        await using old = await prisma.$lock(key);
        const state = stateOf(old);
        const own = await toldBy(old.$transaction(async () => await prisma.$resumeLock(state)));
        const other = await toldBy(prisma.$withLock(`${key}:2`, async () => await prisma.$resumeLock(state)));
        const allowed = prisma.$withLock(`${key}:2`, async () => {
          await (await prisma.$resumeLock(state, { nested: 'allow' })).release();
          return 'resumed';
        });
        return [own, other, await toldBy(allowed)];
      },
    ],
  });
});

describeWithShop('the same on the fake and on real servers: $locks.close', () => {
  compare({
    'lets the transaction of a handle end': [
      { told: { value: 'worked' }, waits: 'CLOSED', next: 'CLOSED', aborted: [true, false], remaining: 0 },
      async (prisma, key) => {
        const handle = await prisma.$lock(key);
        const [inside, end] = [gate<AbortSignal>(), gate()];
        const works = toldBy(
          handle.$transaction(async (_, { signal }) => {
            inside.open(signal);
            await end.opened;
            return 'worked';
          }),
        );
        const waits = toldBy(handle.$transaction(() => 'waits'));
        const signal = await inside.opened;
        const closed = prisma.$locks.close();
        const aborted = [handle.signal.aborted, signal.aborted];
        const next = await toldBy(handle.$transaction(() => 'next'));
        const remaining = handle.remaining();
        end.open();
        await closed;
        return { told: await works, waits: await waits, next, aborted, remaining };
      },
    ],
    'refuses what comes until it has ended': [
      [...Array.from({ length: 9 }, () => 'CLOSED'), 'RangeError: mine', { value: 'behind' }],
      async (prisma, key) => {
        const state = stateOf(await prisma.$lock(key));
        await prisma.$oncePer(`${key}:done`, 3_600_000, () => {});
        const end = await closing(prisma, key);
        const told = [
          await toldBy(prisma.$withLock(`${key}:1`, () => {})),
          await toldBy(prisma.$withLock([`${key}:1`, `${key}:2`], () => {})),
          await toldBy(prisma.$tryWithLock(`${key}:1`, () => {})),
          await toldBy(prisma.$lock(`${key}:1`)),
          await toldBy(prisma.$resumeLock(state)),
          await toldBy(prisma.$oncePer(`${key}:1`, 60_000, () => {})),
          await toldBy(prisma.$oncePer(`${key}:done`, 3_600_000, () => {})),
          await toldBy(prisma.$oncePer(`${key}:1`, 60_000, () => {}, { signal: mine() })),
          await toldBy(prisma.$locks.forceRelease(`${key}:1`)),
          await toldBy(prisma.$withLock(`${key}:1`, () => {}, { signal: mine() })),
        ];
        await end();
        return [...told, await toldBy(prisma.$withLock(`${key}:1`, () => 'behind'))];
      },
    ],
    'refuses a lock of a hook, and a nested one, and no call that joins': [
      ['CLOSED', 'CLOSED', { value: 'joined' }],
      async (prisma, key) => {
        const [hooked, inside, goOn] = [gate(), gate(), gate()];
        const told: unknown[] = [];
        const first = prisma.$withLock(key, (_, lock) => {
          lock.afterCommit(async () => {
            hooked.open();
            await goOn.opened;
            told.push(await toldBy(prisma.$withLock(key, () => {})));
          });
        });
        await hooked.opened;
        const second = prisma.$withLock(`${key}:2`, async () => {
          inside.open();
          await first;
          told.push(await toldBy(prisma.$withLock(`${key}:3`, () => {}, { nested: 'allow' })));
          told.push(await toldBy(prisma.$withLock(`${key}:2`, () => 'joined')));
        });
        await inside.opened;
        const closed = prisma.$locks.close();
        goOn.open();
        await Promise.all([second, closed]);
        return told;
      },
    ],
    'refuses what has not begun its work': [
      ['CLOSED', 'CLOSED', 'CLOSED', 'CLOSED', 'CLOSED'],
      async (prisma, key) => {
        const handle = await prisma.$lock(key);
        const calls = [
          toldBy(prisma.$withLock(`${key}:1`, () => {})),
          toldBy(prisma.$lock(`${key}:2`)),
          toldBy(prisma.$oncePer(`${key}:3`, 60_000, () => {})),
          toldBy(handle.$transaction(() => {})),
          toldBy(prisma.$resumeLock(stateOf(handle))),
        ];
        await prisma.$locks.close();
        return await Promise.all(calls);
      },
    ],
    'takes locks again while nothing but hooks runs': [
      [{ value: 'other' }, { value: 'of the hook' }],
      async (prisma, key) => {
        const [hooked, goOn] = [gate(), gate()];
        let ofHook: unknown;
        const call = prisma.$withLock(key, (_, lock) => {
          lock.afterCommit(async () => {
            hooked.open();
            await goOn.opened;
            ofHook = await toldBy(prisma.$withLock(key, () => 'of the hook'));
          });
        });
        await hooked.opened;
        const closed = prisma.$locks.close();
        const other = await eventually('locks are taken again', async () => {
          const told = await toldBy(prisma.$withLock(`${key}:2`, () => 'other'));
          return told !== 'CLOSED' && told;
        });
        goOn.open();
        await Promise.all([call, closed]);
        return [other, ofHook];
      },
    ],
  });
});

describeWithShop('the same on the fake and on real servers: what a call is given', () => {
  compare({
    'is checked before anything else, and in the same order': [
      [
        ...Array.from({ length: 7 }, () => 'INVALID_OPTION options'),
        'INVALID_OPTION key',
        'INVALID_OPTION key',
        'INVALID_OPTION fn',
        'INVALID_OPTION waitTime',
        'INVALID_OPTION leaseTime',
        'INVALID_OPTION nope',
      ],
      async (prisma, key) => {
        await using handle = await prisma.$lock(key);
        const state = stateOf(handle);
        const none = wrong<object>(null);
        const told = [
          await toldBy(prisma.$withLock(key, () => {}, none)),
          await toldBy(prisma.$tryWithLock(key, () => {}, none)),
          await toldBy(prisma.$tryWithLock(key, () => {}, wrong('x'))),
          await toldBy(prisma.$oncePer(key, 60_000, () => {}, none)),
          await toldBy(prisma.$lock(key, none)),
          await toldBy(prisma.$resumeLock(state, none)),
          await toldBy(handle.$transaction(() => {}, none)),
          await prisma.$withLock(`${key}:2`, () => toldBy(prisma.$oncePer('a:undefined', 60_000, () => {}))),
          await toldBy(prisma.$tryWithLock('', () => {}, wrong({ waitTime: 1 }))),
          await toldBy(prisma.$tryWithLock(key, wrong(5), wrong({ waitTime: 1 }))),
          await toldBy(prisma.$tryWithLock(key, () => {}, wrong({ waitTime: 1 }))),
          await toldBy(prisma.$resumeLock(state, wrong({ leaseTime: 5_000 }))),
          await toldBy(prisma.$resumeLock(state, wrong({ leaseTime: 5_000, nope: 1 }))),
        ];
        return told;
      },
    ],
    'must be called on the client': [
      [...Array.from({ length: 5 }, () => 'INVALID_OPTION this'), { value: 0n }],
      async (prisma, key) => {
        const { $withLock, $tryWithLock, $oncePer, $lock, $resumeLock, $locks } = prisma;
        await using handle = await prisma.$lock(key);
        return [
          await toldBy($withLock(`${key}:1`, () => {})),
          await toldBy($tryWithLock(`${key}:1`, () => {})),
          await toldBy($oncePer(`${key}:1`, 60_000, () => {})),
          await toldBy($lock(`${key}:1`)),
          await toldBy($resumeLock(stateOf(handle))),
          await toldBy($locks.inspect(`${key}:1`).then(({ turns }) => turns)),
        ];
      },
    ],
    'is looked at before a run of $oncePer that is done': [
      ['RangeError: mine', 'REENTRY', { value: false }],
      async (prisma, key) => {
        await prisma.$oncePer(key, 3_600_000, () => {});
        const again = (signal?: AbortSignal) =>
          toldBy(prisma.$oncePer(key, 3_600_000, () => {}, signal && { signal }).then(({ ran }) => ran));
        const inside = prisma.$withLock(key, () => again(mine()));
        return [await again(mine()), await inside, await again()];
      },
    ],
  });
});

describeWithShop('the same on the fake and on real servers: what a refusal says', () => {
  const { prisma } = new Shop().client();
  const state = { keys: ['k'], tokens: ['1'], holders: [randomUUID()], leaseTime: 5_000 };
  test.each<[string, (prisma: ShopClient) => Promise<unknown>]>([
    ['without a client', ({ $withLock }) => $withLock('k', () => {})],
    ['of a wait time', (on) => on.$tryWithLock('k', () => {}, wrong({ waitTime: 1 }))],
    ['of a lease time', (on) => on.$resumeLock(state, wrong({ leaseTime: 5_000 }))],
    ['of a token that nobody knows', (on) => on.$resumeLock(state)],
  ])('%s', async (_, refused) => {
    const real = await outcomeOf(refused(prisma));
    expect(real).toMatchObject({ code: expect.any(String) });
    expect(await outcomeOf(refused(fakeLocks<ShopClient>(mocks()).prisma))).toEqual(real);
  });

  test('while the client is being closed', async () => {
    const told = async (on: ShopClient) => {
      const handle = await on.$lock('closing');
      const end = await closing(on, 'closing');
      const refused = [await outcomeOf(on.$withLock('k', () => {})), await outcomeOf(handle.$transaction(() => {}))];
      await end();
      return refused;
    };
    const real = await told(prisma);
    expect(real).toMatchObject([
      { code: 'CLOSED', key: 'k' },
      { code: 'CLOSED', key: 'closing' },
    ]);
    expect(await told(fakeLocks<ShopClient>(mocks()).prisma)).toEqual(real);
  });

  test('to a transaction that waits for another one of its handle', async () => {
    const told = async (on: ShopClient) => {
      await using handle = await on.$lock('busy');
      const { end } = await working(handle);
      const late = await outcomeOf(handle.$transaction(() => {}, { waitTime: 20 }));
      end();
      return late;
    };
    const real = await told(prisma);
    expect(real).toMatchObject({ message: expect.stringContaining('20 ms, because of another transaction') });
    expect(await told(fakeLocks<ShopClient>(mocks()).prisma)).toEqual(real);
  });
});

describeWithShop('the same on the fake and on real servers: what $locks.inspect knows of the turns', () => {
  const turnsOf = async (prisma: ShopClient, key: string) => (await prisma.$locks.inspect(key)).turns;
  compare({
    'counts a handle and each of its transactions that was committed': [
      [1n, 3n, 3n, 4n, true],
      async (prisma, key) => {
        const handle = await prisma.$lock(key);
        const seen: unknown[] = [await turnsOf(prisma, key)];
        await handle.$transaction(() => {});
        await handle.$transaction(() => {});
        seen.push(await turnsOf(prisma, key));
        await toldBy(handle.$transaction(() => Promise.reject(new Error('no'))));
        seen.push(await turnsOf(prisma, key));
        await using resumed = await prisma.$resumeLock(stateOf(handle));
        const { turns, token } = await prisma.$locks.inspect(key);
        return [...seen, turns, token === resumed.token];
      },
    ],
    'counts no call before it has committed, and none that was rolled back': [
      [0n, 1n, 1n, 1n],
      async (prisma, key) => {
        const inside = await prisma.$withLock(key, () => turnsOf(prisma, key));
        const behind = await turnsOf(prisma, key);
        await toldBy(prisma.$withLock(key, () => Promise.reject(new Error('no'))));
        const rolledBack = await turnsOf(prisma, key);
        await toldBy(prisma.$withLock(key, () => prisma.$withLock(key, () => Promise.reject(new Error('no')))));
        return [inside, behind, rolledBack, await turnsOf(prisma, key)];
      },
    ],
    'counts forceRelease, which raises the token': [
      [false, 1n, true, 3n, true],
      async (prisma, key) => {
        const nobody = await prisma.$locks.forceRelease(key);
        const first = await turnsOf(prisma, key);
        const handle = await prisma.$lock(key);
        const forced = await prisma.$locks.forceRelease(key);
        const { turns, token = 0n } = await prisma.$locks.inspect(key);
        await handle.release();
        return [nobody, first, forced, turns, token > handle.token];
      },
    ],
    'leaves a later holder alone in a forceRelease of the one that was seen': [
      [false, true],
      async (prisma, key) => {
        const seen = await prisma.$locks.inspect(key);
        await using handle = await prisma.$lock(key);
        const later = await prisma.$locks.forceRelease(key, seen);
        await handle.$transaction(() => {});
        return [later, await prisma.$locks.forceRelease(key, await prisma.$locks.inspect(key))];
      },
    ],
    'has a token for each of several keys': [
      [1n, 1n, false, true, true],
      async (prisma, key) => {
        await using handle = await prisma.$lock([key, `${key}:2`]);
        const [first, second] = [await prisma.$locks.inspect(key), await prisma.$locks.inspect(`${key}:2`)];
        const whole = handle.toJSON().tokens.join() === [first.token, second.token].join();
        return [first.turns, second.turns, first.token === handle.token, second.token === handle.token, whole];
      },
    ],
  });
});
