import { Prisma } from '@prisma/client/extension';
import { InsideTransactionError, InvalidOptionError } from './base/errors.js';
import { toEmit } from './base/events.js';
import { heldKey } from './context.js';
import type { Database } from './fence/database.js';
import { Fencing } from './fence/fencing.js';
import { LocalQueue } from './lease/queue.js';
import { Renewal } from './lease/renewal.js';
import {
  checkKey,
  checkWork,
  type FencedLockOptions,
  type LockOptions,
  type ResolvedLockOptions,
  type ResolvedOptions,
  resolveLockOptions,
  resolveOptions,
} from './options.js';
import { checkClient, fieldsOf, isTransactionClient, modelsOf } from './prisma/client.js';
import type { HookParams, PrismaInternals } from './prisma/internals.js';
import { Rescue, rescueFactory } from './prisma/rescue.js';
import { prismaDatabase, writesOutside } from './prisma/transactions.js';
import type { NOT_ON_TX } from './prisma/tx.js';
import type { RedisClient } from './redis/client.js';
import { RedisStore } from './redis/store.js';
import { type Lock, type Parts, type TryResult, tryWithLock, type Work, withLock } from './with-lock.js';

/** The client of a lock's transaction: the caller's own, extensions included, without what would leave it. */
export type LockTx<Client> = Omit<Client, (typeof NOT_ON_TX)[number]>;

/** `$tryWithLock` does not wait, so it takes no `waitTime`. */
export type TryLockOptions = Omit<LockOptions, 'waitTime'>;

/**
 * A client whose models of these names have the field: applying the extension to another one does not compile. Names
 * that only the run time knows are checked there.
 */
type WithFence<Model extends string, Field extends string> = string extends Model | Field
  ? unknown
  : { [M in Model as Uncapitalize<M>]: { fields: { [F in Field]: unknown } } };

/**
 * The Prisma client extension: adds `$withLock` and `$tryWithLock`.
 *
 * @throws InvalidOptionError for an option that cannot be used, when it is made and when it is applied.
 */
export function fencedLock<const Model extends string = never, const Field extends string = 'fence'>(
  options: FencedLockOptions & { readonly models?: readonly Model[]; readonly fenceField?: Field },
) {
  const extension = extensionOf(resolveOptions(options));
  return extension as (client: WithFence<Model, Field>) => ReturnType<typeof extension>;
}

function extensionOf(resolved: ResolvedOptions) {
  return Prisma.defineExtension((client) => {
    const { parts, databaseOf } = assemble(client as unknown as PrismaInternals, resolved);
    return client.$extends({
      name: 'fenced-lock',
      query: { $allOperations: (params) => noticeEscape(params as unknown as HookParams) },
      client: {
        /**
         * Runs `fn` alone under `key`, in one transaction whose updates cannot be lost.
         *
         * @returns what `fn` returned, and only if its transaction has committed.
         * @throws LockTimeoutError, LockUnavailableError: the lock was not had, nothing was done.
         * @throws LockLostError, StaleTokenError, TransactionAbortedError: it was rolled back.
         * @throws CommitUnknownError where neither can be found out.
         * @throws whatever `fn` threw, untouched: it was rolled back.
         */
        async $withLock<T, R>(
          this: T,
          key: string,
          fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
          options: LockOptions = {},
        ): Promise<R> {
          const call = check(this, '$withLock', key, fn, options, resolved.defaults);
          return await withLock(parts, databaseOf(call.client), call.key, fn as Work<object, R>, call.options);
        },

        /**
         * `$withLock` that does not wait: `{ acquired: false }` if somebody else has the key now.
         *
         * @throws as `$withLock`, except LockTimeoutError.
         */
        async $tryWithLock<T, R>(
          this: T,
          key: string,
          fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
          options: TryLockOptions = {},
        ): Promise<TryResult<R>> {
          const call = check(this, '$tryWithLock', key, fn, options, resolved.defaults);
          if ('waitTime' in options) {
            throw new InvalidOptionError('waitTime', 'has no place in $tryWithLock, which does not wait.');
          }
          return await tryWithLock(parts, databaseOf(call.client), call.key, fn as Work<object, R>, call.options);
        },
      },
    });
  });
}

/** Passes on an operation, unless it is a write that stands in a lock's function and not in its transaction. */
function noticeEscape(params: HookParams): Promise<unknown> {
  const key = heldKey();
  if (key === undefined || !writesOutside(params)) return params.query(params.args);
  const { model, operation } = params;
  throw new InsideTransactionError(
    `${model === undefined ? operation : `${model}.${operation}`} was called inside the function of a lock, on a client ` +
      'whose writes do not belong to its transaction: they would stay if it is rolled back, and wait for what it holds. ' +
      'Use the client that the function is given; for what has to stay whatever happens, one without this extension.',
    { key },
  );
}

/** What the calls of one extended client share. Nothing here opens a connection. */
function assemble(client: PrismaInternals, options: ResolvedOptions) {
  const emit = toEmit(options.onEvent);
  const adapter = checkClient(client);
  const rescue = new Rescue(options.rescue ?? rescueFactory(adapter));
  const { keyPrefix, commandTimeout } = options;
  const store = new RedisStore(options.redis as unknown as RedisClient, { keyPrefix, commandTimeout }, emit);
  const parts: Parts = {
    store,
    queue: new LocalQueue(),
    renewal: new Renewal(store),
    fencing: fencingOf(client, options),
    emit,
    calm: true,
  };
  const databaseOf = (outermost: PrismaInternals): Database<object> => prismaDatabase(outermost, rescue.query);
  return { parts, databaseOf };
}

function fencingOf(client: PrismaInternals, { fenceField, models }: ResolvedOptions): Fencing {
  const fields = fieldsOf(client);
  const has = (model: string) =>
    fields.get(model)?.some(({ name, type }) => name === fenceField && type === 'BigInt') ?? false;
  for (const model of models ?? []) {
    if (!fields.has(model)) throw new InvalidOptionError('models', `names ${model}, which the schema does not have.`);
    if (!has(model)) {
      throw new InvalidOptionError(
        'models',
        `names ${model}, which has no field \`${fenceField} BigInt @default(0)\`: add it, in a migration too.`,
      );
    }
  }
  return new Fencing(fenceField, new Set(models ?? [...fields.keys()].filter(has)), modelsOf(client));
}

function check(
  self: unknown,
  method: string,
  key: unknown,
  fn: unknown,
  options: LockOptions,
  defaults: ResolvedLockOptions,
) {
  const client = Prisma.getExtensionContext(self) as unknown as PrismaInternals;
  const checked = checkKey(key);
  checkWork(fn);
  if (isTransactionClient(client)) {
    throw new InsideTransactionError(
      `\`${method}\` was called on the client of a transaction, which would wait for the lock while it holds a ` +
        'connection and rows. Call it on the client itself, and work in the transaction that it gives.',
      { key: checked },
    );
  }
  return { client, key: checked, options: resolveLockOptions(options, defaults) };
}
