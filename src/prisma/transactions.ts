import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
import { Reply } from '../base/reply.js';
import { runInside, Scope, scopeWith } from '../base/scope.js';
import { Ticket } from '../connection/pool.js';
import {
  type BeginOptions,
  type Database,
  type Hook,
  NotRun,
  type Opening,
  type OpeningOptions,
  type Query,
} from '../database/database.js';
import { WRITE_NAMES } from '../fencing/writes.js';
import { fenceConnected, fencedClasses } from './adapter.js';
import { isDisconnect, isEnded, isNoMatch, isUnavailable, sqlDetail, sqlState } from './errors.js';
import type { HookParams, PrismaInternals, TransactionClient } from './internals.js';
import { fencedTx, IN_FLIGHT, type OperationNames, UNSENT, Unsent } from './tx.js';

/**
 * Implements the port to the database for the client of a call, which may have been extended further than the one that
 * the locks were made for. `concerned`: the models whose writes can reach fenced rows.
 */
export function prismaDatabases(
  rescue: Query,
  concerned: readonly string[],
): (client: PrismaInternals) => Database<object> {
  const databases = new WeakMap<PrismaInternals, Database<object>>();
  return (client) => {
    const known = databases.get(client);
    if (known !== undefined) return known;
    const database = prismaDatabase(client, rescue, concerned);
    databases.set(client, database);
    return database;
  };
}

function prismaDatabase(client: PrismaInternals, rescue: Query, concerned: readonly string[]): Database<object> {
  const models = new Set(Object.keys(client._runtimeDataModel.models).flatMap((name) => [name, lower(name)]));
  const operations = { isModel: (name: string) => models.has(name), isWrite: (name: string) => WRITE_NAMES.has(name) };
  return {
    rescue,
    sqlState,
    sqlDetail,
    isNoMatch,
    isDisconnect,
    isUnavailable,
    isEnded,
    unsent: (tx) => (tx as { readonly [UNSENT]?: string })[UNSENT],
    inFlight: (tx) => (tx as { readonly [IN_FLIGHT]?: string })[IN_FLIGHT],
    open: (options) => begin(client, options, concerned, operations),
  };
}

type Body = (tx: TransactionClient) => Promise<void>;

function begin(
  client: PrismaInternals,
  options: OpeningOptions,
  concerned: readonly string[],
  operations: OperationNames,
): Opening<object> {
  const hooks = options.hooked ? new WriteHooks() : undefined;
  const ticket = new Ticket(options);
  const fencedBefore = fencedClasses.count;
  const decided = new Reply<Body>();
  const settled = runInside({ ticket }, () =>
    (hooks === undefined ? client : client.$extends(hooks.extension(concerned))).$transaction(
      (tx) => decided.value?.(tx) ?? decided.promise.then((body) => body(tx)),
      prismaOptions(options),
    ),
  );
  return {
    run(hook, body) {
      const once = (tx: TransactionClient): Promise<void> => {
        ticket.close();
        if (!ticket.used) return notFenced(client, fencedBefore);
        if (hooks !== undefined && !(HOOKED in tx)) return Promise.reject(anotherClient());
        hooks?.begin(hook, tx);
        const own = fencedTx(tx, options.key, new Unsent(operations, options.key));
        return body(own.tx, own.close);
      };
      let ended: Promise<void> | undefined;
      // An extension may repeat the transaction, on a connection that is not fenced. A repetition ends as the first run
      // did.
      decided.resolve((tx) => {
        ended ??= once(tx);
        return ended;
      });
      return settled;
    },
    discard: () => decided.resolve(() => Promise.reject(new Error('not needed'))),
  };
}

/**
 * Refuses a transaction without a fenced connection. If the client had connected before, its adapter is fenced now, and
 * the transaction begins again.
 */
async function notFenced({ _engineConfig: { adapter } }: PrismaInternals, fencedBefore: number): Promise<never> {
  if (adapter !== undefined) await fenceConnected(adapter);
  if (fencedClasses.count > fencedBefore) throw new NotRun('the adapter had to be fenced first');
  throw new InvalidOptionError(
    'adapter',
    'gave the transaction of the lock a connection that is not fenced: this client had connected before `fencedLock` was ' +
      'applied to it, or begins its transactions elsewhere. Apply `fencedLock` before the first query.',
  );
}

/** An extension may have its own `$transaction`, which calls that of the client that it was made for. */
function anotherClient(): InvalidOptionError {
  return new InvalidOptionError(
    '$transaction',
    'of an extension of this client begins on another client, so writes would not be checked against the fence. Take ' +
      'locks on a client without that extension. To repeat after conflicts, use the option `retries`.',
  );
}

/** A property that only a client with this hook has. */
const HOOKED = '$fencedLockHook';

function prismaOptions({ maxWait, isolationLevel }: BeginOptions): Record<string, unknown> {
  return {
    // Prisma's own timeout must never fire: it lets the rest of a running operation run outside the transaction
    // (prisma/orm#29762). This package's timeout shuts the gate and ends the backend.
    timeout: LONGEST_TIME,
    ...(maxWait === undefined ? {} : { maxWait }),
    ...(isolationLevel === undefined ? {} : { isolationLevel }),
  };
}

/**
 * Marks an operation that this package itself runs, so that the hook passes it. Operations that another extension
 * starts meanwhile still count as the caller's.
 */
interface OwnOperation {
  readonly model: string;
  readonly name: string;
  sent: boolean;
}

/** Passes the writes of one transaction to its hook, for models whose tables have no guard. */
class WriteHooks {
  #hook: Hook | undefined;
  #tx: TransactionClient | undefined;

  begin(hook: Hook, tx: TransactionClient): void {
    this.#hook = hook;
    this.#tx = tx;
  }

  /** A query extension that is innermost, so it also sees operations that other extensions swallow or repeat. */
  extension(models: readonly string[]): object {
    const onWrite = (params: HookParams) => this.#onWrite(params);
    const writes = Object.fromEntries([...WRITE_NAMES].map((name) => [name, onWrite]));
    return {
      name: 'fenced-lock writes',
      client: { [HOOKED]: true },
      query: Object.fromEntries(models.map((model) => [lower(model), writes])),
    };
  }

  #onWrite({ model = '', operation: name, args, query }: HookParams): Promise<unknown> {
    const [hook, tx] = [this.#hook, this.#tx];
    const own = scopeWith('own')?.inside.own as OwnOperation | undefined;
    const isOwn = own !== undefined && !own.sent && own.model === model && own.name === name;
    if (isOwn) own.sent = true;
    if (hook === undefined || tx === undefined || isOwn) return query(args);
    return hook({
      model,
      name,
      args,
      send: (sent) => query(sent),
      run: (other, otherName, sent) =>
        new Scope({ own: { model: other, name: otherName, sent: false } satisfies OwnOperation }).run(
          async () => await tx[lower(other)]?.[otherName]?.(sent),
        ),
    });
  }
}

const lower = (model: string) => model.charAt(0).toLowerCase() + model.slice(1);
