import { WRITE_NAMES } from '../fencing/writes.js';
import { asPrismaReads, givenArguments } from './arguments.js';
import type { HookParams, PrismaInternals } from './internals.js';
import { lockTransaction } from './lock-transactions.js';
import { nameOnClient } from './models.js';
import { refuseTakenOut } from './outside.js';
import { RAW } from './tx.js';

/** A property that only a client with our innermost query extension has. */
export const INNERMOST = '$fencedLockInnermost';

/**
 * Makes the client that the transactions of locks begin on, which nobody else has. Its query extension is below all others of
 * the client, so it also sees operations that others repeat, and none of them changes the condition that a write gets here.
 *
 * - Where a table has no guard, the writes of a transaction pass its hook. All of them, also of other models and by raw SQL, so that
 *   no write overtakes another.
 * - An operation that is not in the transaction of a lock was called on `tx`, and an extension has taken it out: refused.
 *
 * One extended client serves all transactions: to extend one takes longer than a statement.
 *
 * @returns the client to begin on. `hooked`: whether the writes of the transaction need the hook.
 */
export function innermostOf(base: PrismaInternals): (hooked: boolean) => PrismaInternals {
  // Not by its `$on`, which Prisma takes from an extended client: applications give it back.
  const isExtended = base._extensions?.isEmpty() !== true;
  const each = (names: Iterable<string | symbol>) => Object.fromEntries([...names].map((name) => [name, onOperation]));
  // Each operation that an extension names costs Prisma two promises more. Without other extensions only writes need it.
  const query = isExtended ? { $allOperations: onOperation } : { $allModels: each(WRITE_NAMES), ...each(RAW) };
  let client: PrismaInternals | undefined;
  return (hooked) => {
    if (!hooked && !isExtended) return base;
    client ??= base.$extends({ name: 'fenced-lock transactions', client: { [INNERMOST]: true }, query });
    return client;
  };
}

function onOperation(operation: HookParams): Promise<unknown> {
  const { model, operation: name, query, __internalParams: params } = operation;
  const hook = lockTransaction(params?.transaction?.id)?.hook;
  if (hook === undefined || !(model === undefined || WRITE_NAMES.has(name))) return refuseTakenOut(operation);
  const args = givenArguments(operation);
  if (model === undefined) {
    const send = (sent: unknown) => query(sent);
    return hook.send({ model: '', name, args, send, run: send });
  }
  // Behind the extensions, which have seen the caller's operation already. `query` changes the parameters.
  const named = (other: string) => ({ ...params, action: other, clientMethod: `${nameOnClient(model)}.${other}` });
  return hook.send({
    model,
    name,
    args: asPrismaReads(args),
    send: (sent, other = name) => query(sent, named(other)),
    run: (other, sent) => query(sent, { ...named(other), dataPath: [], unpacker: undefined }),
  });
}
