import { heldKey } from '../../../base/held-keys.js';
import { isWrite, outsideWrite } from '../../../prisma/hooks.js';
import { RUNS_THE_FUNCTION } from '../../../prisma/inside-transaction.js';
import { functionOf, type MockCall, MockClient, type Sending, standIn } from './mock.js';

/** Refuses a write that is sent inside the function of a lock. */
const OUTSIDE: Sending = {
  admit(call) {
    const key = heldKey();
    if (key !== undefined && writes(call)) throw outsideWrite(key, call.name, call.model && modelOf(call.model));
  },
  settled() {},
};

/** Whether the real locks would take it for a write: by its name, or by its raw SQL. */
export function writes({ name, args }: MockCall): boolean {
  // As a query hook gets it: `$queryRaw` is called with a template, or with a `Sql`.
  const template = Array.isArray(args[0]) ? { strings: args[0] } : args[0];
  return isWrite(name, name === '$queryRaw' ? template : args);
}

/** A model as Prisma names it, by its property of the client. */
export function modelOf(delegate: string): string {
  return delegate.charAt(0).toUpperCase() + delegate.slice(1);
}

/**
 * The client that the code under test is given: the mock, with the methods of the locks. The function of the mock's
 * `$transaction` gets such a client, too, whose locks are refused as they find the transaction in the call stack.
 */
export function fakeClient(mock: object, methods: Readonly<Record<string, unknown>>): object {
  const begin = functionOf(mock, '$transaction');
  if (begin === undefined) return new MockClient(mock, OUTSIDE, methods).proxy;
  const $transaction = standIn(Reflect.get(mock, '$transaction') as object, ([work, ...rest]) => {
    if (typeof work !== 'function') return begin(work, ...rest);
    // The mock may hand over no client.
    const run = (tx: unknown, ...more: unknown[]) => {
      const given = typeof tx === 'object' && tx !== null ? fakeClient(tx, methods) : tx;
      return FRAME[RUNS_THE_FUNCTION](() => work(given, ...more) as unknown);
    };
    return begin(run, ...rest);
  });
  return new MockClient(mock, OUTSIDE, { ...methods, $transaction }).proxy;
}

/** Runs the function of a `$transaction`. The locks look for this name in the call stack, as they do for Prisma's own. */
const FRAME = {
  async [RUNS_THE_FUNCTION](work: () => unknown): Promise<unknown> {
    // The call stack continues over an `await` only.
    return await work();
  },
};
