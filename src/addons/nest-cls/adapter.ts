import type { TransactionalAdapterOptions as AdapterOptions, TransactionalAdapter } from '@nestjs-cls/transactional';
import { InvalidOptionError } from '../../base/errors.js';
import { Facade } from '../../base/facade.js';
import { innermostHeld } from '../../base/held-keys.js';
import { currentTx } from '../../current.js';
import type { LockTx } from '../../index.js';

/** A Prisma client that is extended by fencedLock, as far as the adapter uses it. */
export interface LockingClient {
  $withLock(key: never, fn: never, options?: never): Promise<unknown>;
  $transaction(fn: never, options?: never): Promise<unknown>;
}

export interface TransactionalAdapterOptions {
  /** What the client is injected by: your PrismaService, or `getLockClientToken()`. */
  readonly clientToken: unknown;
  /** Options of every transaction that stands in no lock. */
  readonly defaultTxOptions?: FencedLockTransactionOptions | undefined;
}

/** Of a transaction that stands in no lock, as Prisma has them. One that joins a lock has those of the lock. */
export interface FencedLockTransactionOptions {
  /** How long to wait for a connection of the pool; ms. Default: that of `transactionOptions` of the client, or Prisma's (2 000). */
  readonly maxWait?: number | undefined;
  /** How long the work may take; ms. In a lock: how long this part of its work may; refused in a
   * transaction of a handle. Default: that of `transactionOptions`, or Prisma's (5 000). */
  readonly timeout?: number | undefined;
  /** In a lock it must be that of the lock. Default: that of `transactionOptions`, or the database's. */
  readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable' | undefined;
}

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
    this.optionsFactory = (client) => adapterOf(client, defaultTxOptions);
  }
}

function adapterOf<Client extends LockingClient>(
  client: Client,
  defaults: FencedLockTransactionOptions,
): AdapterOptions<LockTx<Client>, FencedLockTransactionOptions> {
  const verbs = (client ?? {}) as unknown as Verbs;
  if (typeof verbs.$withLock !== 'function' || typeof verbs.$transaction !== 'function') {
    throw new InvalidOptionError(
      'clientToken',
      'must be the token of a Prisma client that is extended by fencedLock, and another one was injected.',
    );
  }
  type SetTx = (tx?: LockTx<Client>) => void;
  const workIn = (tx: unknown, fn: Fn, setTx: SetTx) => {
    setTx(new PresentTx(client, tx as object).proxy as LockTx<Client>);
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
      const { timeout, isolationLevel } = options;
      // A call of the same keys, which shares the transaction, and dooms it if it fails.
      if (held.joinable !== undefined) {
        return await verbs.$withLock(held.keys, work, { reentry: 'join', timeout, isolationLevel });
      }
      // Nothing joins a handle: there it is a part of the function, and no more. Its transaction has begun.
      const isOther = isolationLevel !== undefined && isolationLevel !== held.transaction.options?.isolationLevel;
      if (isOther) throw tooLate('isolationLevel');
      if (timeout !== undefined) throw tooLate('timeout');
      return await work();
    },
    // No part of a lock's transaction can be rolled back alone: its `$transaction` refuses.
    async wrapWithNestedTransaction(options, fn, setTx, tx) {
      return await (tx as unknown as Verbs).$transaction((inner) => workIn(inner, fn, setTx), options);
    },
  };
}

function tooLate(option: string): InvalidOptionError {
  return new InvalidOptionError(
    option,
    'of `@Transactional` cannot be given to the transaction of a handle, which has begun. Give it to that one: ' +
      `\`handle.$transaction(fn, { ${option} })\`.`,
  );
}

/**
 * At each use the transaction of the innermost lock, and `tx` where there is none. A CLS context keeps the outer transaction in the
 * function of a lock inside it (`nested: 'allow'`), and what is written there would stand under the wrong token.
 */
class PresentTx extends Facade {
  readonly #client: object;

  constructor(client: object, tx: object) {
    super(tx);
    this.#client = client;
  }

  protected override get inner(): object {
    return (innermostHeld(this.#client)?.transaction.tx as object | undefined) ?? super.inner;
  }

  get(_: object, property: string | symbol): unknown {
    return Reflect.get(this.inner, property);
  }
}
