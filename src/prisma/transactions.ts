import { AsyncLocalStorage } from 'node:async_hooks';
import { LONGEST_TIME } from '../base/clock.js';
import { ClosedError, InsideTransactionError, InvalidOptionError } from '../base/errors.js';
import type { Database, Hook, Opening, Query, TransactionOptions } from '../fence/database.js';
import { type Line, openings, Opening as PgOpening } from '../pg/opening.js';
import { isDisconnect, isNoMatch, sqlDetail, sqlState } from './errors.js';
import {
  type HookParams,
  type PrismaInternals,
  TRANSACTION,
  type TransactionClient,
  type TransactionInfo,
} from './internals.js';
import { withoutExits } from './tx.js';

/** The transaction of one call. */
interface OpenTransaction {
  readonly tx: TransactionClient;
  readonly hook: Hook;
}

/**
 * What became of an operation of our own, as the innermost hook saw it. The hooks of other extensions stand in its
 * way too, and may swallow its error or change its answer.
 */
interface Letter {
  readonly model: string;
  readonly name: string;
  answer?: Promise<unknown>;
}

const ours = new AsyncLocalStorage<Letter>();

/** The transactions of `client`, as the fence needs them. */
export function prismaDatabase(client: PrismaInternals, rescue: Query): Database<object> {
  return {
    rescue,
    sqlState,
    sqlDetail,
    isNoMatch,
    isDisconnect,
    open: (options) => begin(client, options),
  };
}

type Body = (tx: TransactionClient) => Promise<void>;

function begin(client: PrismaInternals, options: TransactionOptions): Opening<object> {
  let decide: (body: Body) => void = () => {};
  const decided = new Promise<Body>((resolve) => {
    decide = resolve;
  });
  const opening = new PgOpening();
  const settled = openings.run(opening, () =>
    hookedClient(client).$transaction(async (tx) => await (await decided)(tx), prismaOptions(options)),
  );
  settled.catch(() => {});
  return {
    async run(hook, body) {
      let id = '';
      decide((tx) => {
        if (!(HOOKED in tx)) throw anotherClient();
        id = tx[TRANSACTION].txId;
        open.set(id, { tx, hook });
        const line = opening.close();
        return body(withoutExits(tx), line ? directly(line) : statements(client, id));
      });
      try {
        await settled;
      } finally {
        open.delete(id);
      }
    },
    discard: () => decide(() => Promise.reject(new Error('not needed'))),
  };
}

/** An extension may have a `$transaction` of its own, which calls that of the client that it was made for. */
function anotherClient(): InvalidOptionError {
  return new InvalidOptionError(
    '$transaction',
    'of an extension of this client begins on another client, past the hook that holds writes to the fence. Take locks ' +
      'on a client without that extension; for conflicts they have `retries` of their own.',
  );
}

/** The transactions of locks that are open, by Prisma's id of each. */
const open = new Map<string, OpenTransaction>();

/** What only a client with our hook has. */
const HOOKED = '$fencedLockHook';

const hookedClients = new WeakMap<PrismaInternals, PrismaInternals>();

/**
 * The client with one more hook than the caller's. Its hook is the innermost of all, so it also sees what other
 * extensions swallow or repeat. Made once for each client: it finds the call by its transaction.
 */
function hookedClient(client: PrismaInternals): PrismaInternals {
  let hooked = hookedClients.get(client);
  if (hooked === undefined) {
    const layer = client.$extends({
      name: 'fenced-lock transaction',
      client: { [HOOKED]: true },
      query: { $allOperations: onOperation },
    });
    // `$parent`, as methods of model extensions see it, is the client before the last one, and so on up: past the hook,
    // but still in the transaction. This layer is its own parent, and another one lies on it.
    Object.defineProperty(layer, '_appliedParent', { value: layer });
    hooked = layer.$extends({ name: 'fenced-lock parent' });
    hookedClients.set(client, hooked);
  }
  return hooked;
}

function prismaOptions({ maxWait, isolationLevel }: TransactionOptions): Record<string, unknown> {
  return {
    // Prisma's own time limit must never fire: it lets the rest of a running operation go on outside the
    // transaction (prisma/orm#29762). Ours shuts the gate and ends the backend.
    timeout: LONGEST_TIME,
    ...(maxWait === undefined ? {} : { maxWait }),
    ...(isolationLevel === undefined ? {} : { isolationLevel }),
  };
}

/** Our own statements go straight to the engine: no extension sees, changes or swallows them. */
function statements(client: PrismaInternals, id: string): Query {
  const interactiveTransaction: TransactionInfo = { kind: 'itx', id };
  return async (text, values) => {
    const query = { query: text, parameters: JSON.stringify(values) };
    const request = { action: 'queryRaw', query: { arguments: query, selection: {} } };
    const { columns, rows } = (await client._engine.request(request, { interactiveTransaction })).data.queryRaw;
    return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])));
  };
}

/** The same over the connection itself. */
function directly(line: Line): Query {
  return async (text, values) => (await line.query(text, values)).rows;
}

async function sendSibling(tx: TransactionClient, model: string, name: string, args: unknown): Promise<unknown> {
  const letter: Letter = { model, name };
  await ours.run(letter, async () => await delegateOf(tx, model)?.[name]?.(args)).catch(() => {});
  if (letter.answer === undefined) throw new Error('another extension kept an operation of the lock from being sent');
  return await letter.answer;
}

function onOperation(params: HookParams): Promise<unknown> {
  const { model, operation: name, args, query } = params;
  const { transaction } = params.__internalParams;
  const what = model === undefined ? name : `${model}.${name}`;
  if (transaction?.kind !== 'itx') {
    throw new InsideTransactionError(
      `${what} would run outside the transaction of the lock. Use the client that the function is given, and no ` +
        '`$transaction` on it.',
    );
  }
  const letter = ours.getStore();
  // Once, and only for what it was written for: what another extension does on the way is the caller's.
  if (letter && letter.answer === undefined && letter.model === model && letter.name === name) {
    letter.answer = Promise.resolve(query(args));
    return letter.answer;
  }
  const own = open.get(transaction.id);
  if (own === undefined) {
    throw new ClosedError(`${what} came after the end of its transaction, and was not sent. Await every operation.`);
  }
  return own.hook({
    model,
    name,
    args,
    send: (sent) => query(sent),
    run: (other, otherName, sent) => sendSibling(own.tx, other, otherName, sent),
  });
}

/** What writes; raw SQL that is sent to be answered writes where it begins so. */
const WRITES = /^(create|update|upsert|delete|\$executeRaw)/;
const RAW_WRITE = /^\s*(insert|update|delete|merge|truncate|copy|call|do)\b/i;

/** Whether an operation would write, and not in the transaction of a lock. */
export function writesOutside({ operation, args, __internalParams: { transaction } }: HookParams): boolean {
  if (transaction?.kind === 'itx' && open.has(transaction.id)) return false;
  if (!operation.startsWith('$queryRaw')) return WRITES.test(operation);
  const { strings, sql } = args as { strings?: readonly string[]; sql?: string };
  return RAW_WRITE.test(Array.isArray(args) ? String(args[0]) : (strings?.[0] ?? sql ?? ''));
}

function delegateOf(tx: TransactionClient, model: string) {
  return tx[model.charAt(0).toLowerCase() + model.slice(1)];
}
