import type { Hook } from '../database/database.js';
import { WRITE_NAMES } from '../fencing/writes.js';
import { asPrismaReads, givenArguments } from './arguments.js';
import type { HookParams, PrismaInternals } from './internals.js';
import { nameOnClient } from './schema.js';
import { RAW } from './tx.js';

/** A property that only a client with this hook has. */
export const HOOKED = '$fencedLockHook';

/**
 * Passes the writes of each transaction to its hook, where a table has no guard. All of them, also of other models and by raw
 * SQL, so that no write overtakes another. One extended client serves all transactions: to extend one takes longer than a
 * statement.
 */
export class WriteHooks {
  readonly #innermost: PrismaInternals;
  #client: PrismaInternals | undefined;
  /** By the ids of the transactions. */
  readonly #hooks = new Map<unknown, Hook>();

  constructor(innermost: PrismaInternals) {
    this.#innermost = innermost;
  }

  /** The client whose transactions have the hook. */
  get client(): PrismaInternals {
    this.#client ??= this.#innermost.$extends(this.#extension());
    return this.#client;
  }

  add(id: unknown, hook: Hook): void {
    this.#hooks.set(id, hook);
  }

  /** Called when the transaction ends. Its connection refuses the statements that come later. */
  remove(id: unknown): void {
    this.#hooks.delete(id);
  }

  /** A query extension that is innermost, so it also sees operations that other extensions swallow or repeat. */
  #extension(): object {
    const onWrite = (params: HookParams) => this.#onWrite(params);
    const each = (names: Iterable<string | symbol>) => Object.fromEntries([...names].map((name) => [name, onWrite]));
    return {
      name: 'fenced-lock writes',
      client: { [HOOKED]: true },
      query: { $allModels: each(WRITE_NAMES), ...each(RAW) },
    };
  }

  #onWrite(write: HookParams): Promise<unknown> {
    const { model, operation: name, query, __internalParams: params } = write;
    const args = givenArguments(write);
    const hook = this.#hooks.get(params?.transaction?.id);
    if (hook === undefined) return query(args);
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
}
