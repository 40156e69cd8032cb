import type { InsideTransactionError } from '../../../base/errors.js';
import { heldKey } from '../../../base/held-keys.js';
import { checkKeys, checkState } from '../../../options/validate-call.js';
import { RUNS_THE_FUNCTION, refuseTransactionClient } from '../../../prisma/inside-transaction.js';
import { outsideWrite } from '../../../prisma/outside.js';
import { lazily } from './lazy.js';
import { isObject, type MockCall, modelOf, standIn, watchedMethod, watchedMock, writes } from './mock.js';

/**
 * The client that the code under test is given: what the test gave, with the methods of the locks. A write on it inside the
 * function of a lock is refused as by the real one.
 */
export function fakeClient(base: object, methods: object): object {
  const watched = watchedMock(base, refusedInside, '$transaction', '$on');
  const ownerOf = (name: string | symbol) => (Object.hasOwn(methods, name) ? methods : base);
  const client = standIn(
    base,
    (name) => {
      const value: unknown = Reflect.get(ownerOf(name), name);
      if (ownerOf(name) === methods) return value;
      if (typeof value === 'function' && name === '$transaction') {
        return watchedMethod(value, name, client, plainTransaction);
      }
      return watched(name, value);
    },
    ownerOf,
  );
  return client;
}

/** Why an operation is refused that was made inside the function of a lock. */
const REFUSALS = new WeakMap<object, InsideTransactionError>();

/** The call, or an operation in its place that is refused if it is awaited inside the function of a lock. */
function refusedInside(of: MockCall): unknown {
  const { name, model, args, call } = of;
  const key = heldKey();
  if (key === undefined || !writes(of)) return call(...args);
  // Made here, where the stack leads to the write.
  const refusal = outsideWrite(key, name, model && modelOf(model));
  const operation = lazily(() => {
    if (heldKey() !== undefined) throw refusal;
    return call(...args);
  });
  REFUSALS.set(operation, refusal);
  return operation;
}

/** A transaction without a lock. Inside the function of a lock, its client is not the `tx` of the lock either. */
function plainTransaction({ args, call }: MockCall): unknown {
  const [work, ...rest] = args;
  if (Array.isArray(work) && heldKey() !== undefined) {
    // The mock may not await what it is given.
    const refused = work.find((operation) => REFUSALS.has(operation));
    if (refused) return Promise.reject(REFUSALS.get(refused));
  }
  if (typeof work !== 'function') return call(...args);
  const watch = heldKey() === undefined ? transactionClient : (tx: object) => transactionClient(fakeClient(tx, {}));
  const run = (tx: unknown, ...more: unknown[]) => {
    // The mock may hand over no client.
    const given = isObject(tx) ? watch(tx) : tx;
    return FRAME[RUNS_THE_FUNCTION](() => work(given, ...more) as unknown);
  };
  return call(run, ...rest);
}

/** Runs the function of a `$transaction`. The locks look for this name in the call stack, as they do for Prisma's own. */
const FRAME = {
  async [RUNS_THE_FUNCTION](work: () => unknown): Promise<unknown> {
    // The call stack continues over an `await` only.
    return await work();
  },
};

const refusing = (method: string) => async (keys: unknown) => refuseTransactionClient(method, checkKeys(keys)[0]);

/** The methods of the locks, as the client of a plain transaction has them. */
const REFUSED: Readonly<Record<string | symbol, unknown>> = {
  $withLock: refusing('$withLock'),
  $tryWithLock: refusing('$tryWithLock'),
  $oncePer: refusing('$oncePer'),
  $lock: refusing('$lock'),
  $resumeLock: async (state: unknown) => refuseTransactionClient('$resumeLock', checkState(state).keys[0]),
};

/** The client that a mock of `$transaction` gives to the function, without the locks. The rest is the mock's own. */
function transactionClient(tx: object): object {
  return standIn(tx, (name) => (Object.hasOwn(REFUSED, name) ? REFUSED[name] : Reflect.get(tx, name)));
}
