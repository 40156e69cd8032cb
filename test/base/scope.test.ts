import { type AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { runInside, type Scope } from '../../src/base/scope.js';
import { eventually } from '../support/eventually.js';

setFlagsFromString('--expose-gc');

/** What the copies of this package in a process share. */
interface Shared {
  readonly storage: AsyncLocalStorage<Scope> & { readonly kResourceStore?: symbol };
  readonly active: number;
}
const shared = (globalThis as Record<symbol, unknown>)[Symbol.for('prisma-extension-fenced-lock.scope')] as Shared;
/** Before Node 24 a storage that is followed leaves a mark on every async resource of the process. */
const { kResourceStore: mark } = shared.storage;
const isFollowed = () => mark !== undefined && mark in new AsyncResource('probe');
const atRest = () => eventually('contexts are not followed', async () => !isFollowed());

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
