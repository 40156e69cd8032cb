import type { TransactionalAdapterOptions as AdapterOptions, TransactionalAdapter } from '@nestjs-cls/transactional';
import { InvalidOptionError } from '../../base/errors.js';
import { Facade } from '../../base/facade.js';
import { innermostHeld, type OpenTransaction } from '../../base/held-keys.js';
import { currentTx } from '../../current.js';
import type { LockTx } from '../../index.js';
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
      if (held.joinable !== undefined) return await join(verbs, held.keys, work, options);
      // Nothing joins a handle: there it is a part of the function, and no more.
      refuseOptions(options, held.transaction);
      return await work();
    },
    // No part of a lock's transaction can be rolled back alone: its `$transaction` refuses.
    async wrapWithNestedTransaction(options, fn, setTx, tx) {
      return await (tx as unknown as Verbs).$transaction((inner) => workIn(inner, fn, setTx), options);
    },
  };
}

/** @throws InvalidOptionError for what a transaction of a handle has had since it began. */
function refuseOptions({ timeout, isolationLevel }: FencedLockTransactionOptions, { options }: OpenTransaction): void {
  const isOther = isolationLevel !== undefined && isolationLevel !== options?.isolationLevel;
  const option = isOther ? 'isolationLevel' : timeout === undefined ? undefined : 'timeout';
  if (option === undefined) return;
  throw new InvalidOptionError(
    option,
    'of `@Transactional` cannot be given to the transaction of a handle, which has begun. Give it to that one: ' +
      `\`handle.$transaction(fn, { ${option} })\`.`,
  );
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
