import { type AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep, setImmediate as turnOfLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { runInside, Scope, scopeWith } from '../../src/base/scope.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/shop.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** What the copies of this package in a process share. */
interface Shared {
  readonly storage: AsyncLocalStorage<Scope> & { readonly kResourceStore?: symbol };
  readonly active: number;
}
const shared = (globalThis as Record<symbol, unknown>)[Symbol.for('prisma-extension-fenced-lock.scope')] as Shared;

const held = () => scopeWith('held')?.inside.held;
const ticket = () => scopeWith('ticket')?.inside.ticket;
/** Before Node 24 a storage that is followed leaves a mark on every async resource of the process. */
const { kResourceStore: mark } = shared.storage;
const isFollowed = () => mark !== undefined && mark in new AsyncResource('probe');
const atRest = () => eventually('contexts are not followed', async () => !isFollowed());

describe('an async context', () => {
  test('is inside of what is around it, each thing by the nearest that says it, and of nothing outside', async () => {
    expect(held()).toBeUndefined();
    await runInside({ held: 'outer', ticket: 't' }, async () => {
      await sleep(1);
      expect([held(), ticket()]).toEqual(['outer', 't']);
      await runInside({ held: 'inner' }, async () => {
        await sleep(1);
        expect([held(), ticket()]).toEqual(['inner', 't']);
      });
      expect(new Scope({ hook: 'o' }).run(() => [held(), ticket()])).toEqual(['outer', 't']);
      expect(held()).toBe('outer');
    });
    expect(held()).toBeUndefined();
  });

  test.each(['resolves', 'rejects', 'throws'])('is inside of nothing any more once what was run %s', async (how) => {
    const later = gate();
    let left: Promise<unknown> | undefined;
    const run = () =>
      runInside({ held: 'h' }, () => {
        left = later.opened.then(() => held());
        if (how === 'throws') throw new Error('no');
        return how === 'resolves' ? Promise.resolve() : Promise.reject(new Error('no'));
      });
    const before = shared.active;
    await Promise.resolve()
      .then(run)
      .catch(() => {});
    later.open();
    expect(await left).toBeUndefined();
    expect(shared.active).toBe(before);
  });

  test('of a chain of calls, each begun before the one before has ended, keeps none that has ended', async () => {
    const scopes: WeakRef<Scope>[] = [];
    const over = gate();
    const call = (before: Promise<void>): Promise<void> =>
      runInside({ held: scopes.length }, async () => {
        scopes.push(new WeakRef(shared.storage.getStore() as Scope));
        // The one around this one ends.
        await before;
        await turnOfLoop();
        const own = gate();
        if (scopes.length < 50) void call(own.opened);
        else await over.opened;
        setImmediate(() => own.open());
      });
    void call(Promise.resolve());
    await eventually('the last has begun, and what has ended is gone', async () => {
      collect();
      return scopes.length === 50 && scopes.filter((scope) => scope.deref() !== undefined).length < 5;
    });
    over.open();
  });
});

describe.skipIf(mark === undefined)('the following of async contexts', () => {
  test('ends a while after the last has ended, and the promises of the application are not followed any more', async () => {
    await runInside({ held: 'h' }, () => sleep(1));
    expect(isFollowed()).toBe(true);
    await atRest();
  });
});

test('what hangs on globalThis cannot be taken apart, as Jest 30 does behind a test file', () => {
  const shared = Reflect.get(globalThis, Symbol.for('prisma-extension-fenced-lock.scope')) as object;
  for (const name of Reflect.ownKeys(shared)) {
    expect(Reflect.getOwnPropertyDescriptor(shared, name)).toMatchObject({ configurable: false, writable: true });
  }
});
