import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
import { onceForEach } from '../base/once-for-each.js';
import { OwnTransaction } from '../connection/client-transaction.js';
import {
  isDisconnect,
  isEnded,
  isNoMatch,
  isStatementError,
  isUnavailable,
  sqlDetail,
  sqlState,
} from '../connection/errors.js';
import { isCounted, isOfAnother, isPlainTransactionOpen } from '../connection/pool.js';
import { type Database, NotRun, type Query, type Unfinished } from '../database/database.js';
import { fenceConnected, fencedClasses } from './adapter.js';
import { INNERMOST, innermostOf, rememberTransaction } from './hooks.js';
import type { AdapterFactory, PrismaInternals, TransactionClient } from './internals.js';
import { nameOnClient } from './models.js';
import { FencedTx, UNFINISHED } from './tx.js';

/**
 * Implements the port to the database for the client of a call, which may have been extended further than the one that
 * the locks were made for.
 */
export function prismaDatabases(rescue: Query): (client: PrismaInternals) => Database<object> {
  return onceForEach((client) => prismaDatabase(client, rescue));
}

function prismaDatabase(client: PrismaInternals, rescue: Query): Database<object> {
  // Every client that holds locks has one.
  const adapter = client._engineConfig.adapter as AdapterFactory;
  const models = Object.keys(client._runtimeDataModel.models);
  const names = new Set([...models, ...models.map(nameOnClient)]);
  const clientFor = innermostOf(client);
  return {
    rescue,
    sqlState,
    sqlDetail,
    isStatementError,
    isNoMatch,
    isDisconnect,
    isUnavailable,
    isEnded,
    unfinished: (tx) => (tx as { readonly [UNFINISHED]?: Unfinished })[UNFINISHED],
    mayBeInsideTransaction: () => isPlainTransactionOpen() || !countedAdapters.has(adapter),
    open({ key, hooked, evenIfWanted, maxWait, isolationLevel }, place) {
      const fencedBefore = fencedClasses.count;
      // Prisma's own timeout must never fire: it lets the rest of a running operation run outside the transaction
      // (prisma/orm#29762). This package's timeout shuts the gate and ends the backend.
      const options = { timeout: LONGEST_TIME, maxWait, isolationLevel };
      const opened = new OwnTransaction<TransactionClient>(place, evenIfWanted, (body) =>
        clientFor(hooked).$transaction(body, options),
      );
      return {
        run: (hook, body) =>
          opened.run((tx, source) => {
            if (source === undefined) return notFenced(adapter, fencedBefore);
            if (isOfAnother(source, adapter)) return ofAnother(adapter, source);
            if (isCounted(source)) countedAdapters.add(adapter);
            const id = transactionId(tx);
            if (hooked && (id === undefined || !(INNERMOST in tx))) return Promise.reject(notHooked());
            const own = new FencedTx(tx, key, names);
            const forget = rememberTransaction(id, {
              hook: hooked ? hook : undefined,
              skip: (skipped) => own.skip(skipped),
            });
            return body(own.proxy, () => {
              own.isClosed = true;
              forget();
            });
          }),
        discard: () => opened.discard(),
      };
    },
  };
}

/** Adapters whose plain transactions are all counted. Known once a lock has had a transaction there. */
const countedAdapters = new WeakSet<object>();

/**
 * Refuses a transaction without a fenced connection. If the client had connected before, its adapter is fenced now, and
 * the transaction begins again.
 */
async function notFenced(adapter: AdapterFactory, fencedBefore: number): Promise<never> {
  await fenceConnected(adapter);
  if (fencedClasses.count > fencedBefore) throw new NotRun('the adapter had to be fenced first');
  throw new InvalidOptionError(
    'adapter',
    'gave the transaction of the lock a connection that is not fenced: this client had connected before `fencedLock` was ' +
      'applied to it, or begins its transactions elsewhere. Apply `fencedLock` before the first query.',
  );
}

/** Writes find the hook of their transaction on the innermost client, by its id. Without the hook, they would not be checked. */
function notHooked(): InvalidOptionError {
  return new InvalidOptionError(
    '$transaction',
    'of an extension of this client begins on another client, or this version of Prisma does not tell the id of a transaction, so ' +
      'writes would not be checked against the fence. Take locks on a client without that extension (to repeat after conflicts, use ' +
      'the option `retries`), or install the guard on each fenced model with `npx fenced-lock add-fence`.',
  );
}

/**
 * Refuses a transaction of another adapter: its outcome is looked up, and its backend ended, over a connection of this
 * client's. If the client had connected before, and shares its pool with others, this is known now, and the transaction
 * begins again.
 */
async function ofAnother(adapter: AdapterFactory, source: object): Promise<never> {
  await adapter.connect();
  if (!isOfAnother(source, adapter)) throw new NotRun('the pool had to be recognized first');
  throw new InvalidOptionError(
    '$transaction',
    'of an extension of this client begins on a client with another adapter, perhaps on another database. Apply `fencedLock` ' +
      'to that client, and take the lock on it: with a client for each tenant, choose the client before you call `$withLock`.',
  );
}

/** Where an interactive transaction tells its id, before Prisma 7.9 and since. */
const ID = Symbol.for('prisma.client.transaction.id');
const SCOPE = Symbol.for('prisma.client.transaction.scope_context');

function transactionId(tx: TransactionClient): unknown {
  const { [ID]: id, [SCOPE]: scope } = tx as { [ID]?: unknown; [SCOPE]?: { readonly txId?: unknown } };
  return id ?? scope?.txId;
}
