import type { TransactionalAdapterOptions as AdapterOptions, TransactionalAdapter } from '@nestjs-cls/transactional';
import { InvalidOptionError } from '../base/errors.js';
import { innermostHeld } from '../base/held-keys.js';
import { currentTx } from '../current.js';
import type { LockTx } from '../index.js';
import {
  checkClient,
  type FencedLockTransactionOptions,
  type LockingClient,
  type TransactionalAdapterOptions,
} from './options.js';

type Fn = () => Promise<unknown>;

/** The methods with their types, which a client that is known by its shape alone does not have. */
interface Verbs {
  $withLock(keys: readonly string[], fn: Fn, options: object): Promise<unknown>;
  $transaction(fn: (tx: unknown) => Promise<unknown>, options?: object): Promise<unknown>;
}

/**
 * Has `@nestjs-cls/transactional` see locks. `TransactionHost.tx` is the lock's `tx` wherever `currentTx` finds it, with a CLS
 * context or without. A `@Transactional()` method joins the transaction of the lock that it is called in, and dooms it if it
 * fails. Outside of a lock it has a plain `$transaction` of the client.
 */
export class TransactionalAdapterFencedLock<Client extends LockingClient>
  implements TransactionalAdapter<Client, LockTx<Client>, FencedLockTransactionOptions>
{
  readonly connectionToken: unknown;
  readonly optionsFactory: (client: Client) => AdapterOptions<LockTx<Client>, FencedLockTransactionOptions>;

  constructor({ clientToken, defaultTxOptions = {} }: TransactionalAdapterOptions = { clientToken: undefined }) {
    if (clientToken === undefined) {
      throw new InvalidOptionError('clientToken', 'is missing: what the client is injected by, such as PrismaService.');
    }
    this.connectionToken = clientToken;
    this.optionsFactory = (client) => adapterOf(checkClient(client) as Client, defaultTxOptions);
  }
}

function adapterOf<Client extends LockingClient>(
  client: Client,
  defaults: FencedLockTransactionOptions,
): AdapterOptions<LockTx<Client>, FencedLockTransactionOptions> {
  const verbs = client as unknown as Verbs;
  type SetTx = (tx?: LockTx<Client>) => void;
  const workIn = (tx: unknown, fn: Fn, setTx: SetTx) => {
    setTx(present(client, tx) as LockTx<Client>);
    return fn();
  };
  return {
    getFallbackInstance: () => currentTx(client, { outside: 'client' }),
    async wrapWithTransaction(options, fn, setTx) {
      const held = innermostHeld(client);
      if (held === undefined) {
        return await verbs.$transaction((tx) => workIn(tx, fn, setTx), { ...defaults, ...options });
      }
      const work = () => workIn(held.transaction.tx, fn, setTx);
      // Nothing joins a handle: there it is a part of the function, and no more.
      return await (held.joinable === undefined ? work() : join(verbs, held.keys, work, options));
    },
    // No part of a lock's transaction can be rolled back alone: its `$transaction` refuses.
    async wrapWithNestedTransaction(options, fn, setTx, tx) {
      return await (tx as unknown as Verbs).$transaction((inner) => workIn(inner, fn, setTx), options);
    },
  };
}

/** A call of the same keys, which shares the transaction, and dooms it if it fails. */
function join(
  verbs: Verbs,
  keys: readonly string[],
  work: Fn,
  { timeout, isolationLevel }: FencedLockTransactionOptions,
): Promise<unknown> {
  return verbs.$withLock(keys, work, {
    reentry: 'join',
    ...(timeout === undefined ? {} : { timeout }),
    ...(isolationLevel === undefined ? {} : { isolationLevel }),
  });
}

/**
 * At each use the transaction of the innermost lock, and `tx` where there is none. A CLS context keeps the outer transaction in the
 * function of a lock inside it (`nested: 'allow'`), and what is written there would stand under the wrong token.
 */
function present(client: object, tx: unknown): object {
  const now = () => (innermostHeld(client)?.transaction.tx ?? tx) as object;
  return new Proxy(
    {},
    {
      get: (_, property) => Reflect.get(now(), property),
      has: (_, property) => Reflect.has(now(), property),
      set: (_, property, value) => Reflect.set(now(), property, value),
      getPrototypeOf: () => Reflect.getPrototypeOf(now()),
    },
  );
}
