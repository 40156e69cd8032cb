import { reactionsDone } from '../base/clock.js';
import {
  HookFailedError,
  InsideTransactionError,
  InvalidOptionError,
  TransactionAbortedError,
} from '../base/errors.js';
import { Reply } from '../base/reply.js';
import { runInside, scopes } from '../base/scope.js';
import { writesBySql } from '../base/sql-text.js';
import type { Lock, Work } from '../call/lock.js';
import { isSubmittable, type PgClient, type PgPool, type PgResult, type Submittable } from '../connection/pg.js';

// Each alone in its text: what stands behind its semicolon would not be sent.
const BEGIN = /^\s*(?:begin|start\s+transaction)\b[^;]*;?\s*$/i;
const COMMIT = /^\s*(?:commit|end)\b[^;]*;?\s*$/i;
const ROLLBACK = /^\s*(?:rollback|abort)\b(?!\s+(?:(?:work|transaction)\s+)?to\b)[^;]*;?\s*$/i;
const SET_LEVEL = /^\s*set\s+transaction\s+isolation\b[^;]*;?\s*$/i;
const READS = /^\s*(?:select|show|with|values)\b/i;
const READ_ONLY = /\bread\s+only\b/i;
const LEVEL = /\bisolation\s+level\s+(read\s+uncommitted|read\s+committed|repeatable\s+read|serializable)/i;

type Query = (...given: unknown[]) => unknown;
type Callback = (error: unknown, result?: unknown) => void;
type Connect = (error: unknown, client?: PgClient, release?: PgClient['release']) => void;

/**
 * The transaction of one lock on a pool, for its function. The function works on `client`, or another library begins a transaction
 * on `locks.pool`: that one. Its states, and how it leaves them:
 *
 * - `unused`: nothing was sent. A statement on `client`: `client`. BEGIN on the pool: `begun`.
 * - `client`: the function works on `client`. A BEGIN on the pool would be another transaction, and is refused.
 * - `begun`: the library is inside. It sends COMMIT: `committing`. It sends ROLLBACK, or gives the connection back: `rolled-back`.
 * - `committing`: the work of the lock is over, and the lock commits. The library gets its answer when the outcome is known, and
 *   the rest of the function runs behind the lock: `ended`.
 * - `rolled-back`: nothing can be sent any more, and the lock rolls back when its function has ended.
 */
export class PoolTransaction {
  readonly client: { query(...given: unknown[]): unknown };
  readonly pool: PgPool;
  readonly connection: PgClient;
  /** Resolves when the library has sent COMMIT. */
  readonly #committing = new Reply<void>();
  readonly #level: string | undefined;
  readonly #outcome = new Reply<PgResult>();
  #state: 'unused' | 'client' | 'begun' | 'committing' | 'ended' | 'rolled-back' = 'unused';
  /** Whether the function of the call that the transaction is of has begun: those of calls that join it run inside. */
  #isRunning = false;

  /** @param connection of the lock's transaction. @param level its isolation level, such as `repeatable read`. */
  constructor(pool: PgPool, connection: PgClient, level: string | undefined) {
    this.pool = pool;
    this.connection = connection;
    this.#level = level;
    this.client = {
      query: (...given) => {
        if (this.#state === 'unused') this.#state = 'client';
        const send = () => (connection.query as Query)(given[0], valuesOf(given[1]));
        return typeof given.at(-1) === 'function' ? answered(given, async () => await send()) : send();
      },
    };
  }

  /**
   * Runs the function of a call as the work of the transaction, which also ends with the library's COMMIT. Resolves to what the
   * function returns: behind that COMMIT it may still run.
   *
   * @param mustBegin whether a function that sends nothing has missed its transaction.
   */
  async run<R>(fn: Work<never, R>, lock: Lock, mustBegin: () => boolean): Promise<Running<R>> {
    const joins = this.#isRunning;
    this.#isRunning = true;
    const value = runInside({ begins: this }, async () => await fn(this.client as never, lock));
    // Whoever gets it looks at it later.
    value.catch(() => {});
    await Promise.race([value, this.#committing.promise]);
    if (joins) return { value };
    this.#checkEnd(lock.key, mustBegin());
    if (!this.#committing.isSettled) return { value };
    // The work of the calls that have joined ends with the same COMMIT: theirs first.
    await reactionsDone();
    const rest = behind(value, lock);
    // If that COMMIT fails, the library throws it here, and the call looks at its own error alone.
    rest.catch(() => {});
    return { value: rest };
  }

  #checkEnd(key: string, mustBegin: boolean): void {
    if (this.#state === 'rolled-back') {
      throw new TransactionAbortedError(
        key,
        'ended',
        'the transaction that was begun on `locks.pool` was rolled back, and the function returned all the same. Throw what it was ' +
          'rolled back for.',
      );
    }
    if (this.#state === 'begun') throw new TransactionAbortedError(key, 'not-awaited', NOT_AWAITED);
    if (this.#state !== 'unused' || !mustBegin) return;
    throw new TransactionAbortedError(
      key,
      'ended',
      'its function began no transaction on `locks.pool`, and sent nothing on `client`. Make the other library with ' +
        '`locks.pool`, and await its transaction in the function.',
    );
  }

  /** Called when the transaction has ended. @param failed why it did not commit. */
  settle(failed?: { readonly error: unknown }): void {
    if (this.#state === 'committing') this.#state = 'ended';
    // Nobody may wait for it.
    this.#outcome.promise.catch(() => {});
    if (failed) this.#outcome.reject(failed.error);
    else this.#outcome.resolve(answerOf('COMMIT'));
  }

  /** Whether the work ended with the library's COMMIT, and the function may still run. */
  get isBehind(): boolean {
    return this.#state === 'ended';
  }

  begin(text: string): void {
    if (this.#state !== 'unused') throw new InsideTransactionError(this.#state === 'client' ? BESIDE_CLIENT : ONLY_ONE);
    this.#checkMode(text);
    this.#state = 'begun';
  }

  /** Sends a statement of the library, once it has begun. */
  send(query: unknown, values: unknown): unknown {
    const text = textOf(query);
    if (BEGIN.test(text)) this.begin(text);
    // Libraries also send it behind a COMMIT that has failed.
    if (this.#state !== 'begun' && ROLLBACK.test(text)) return answerOf('ROLLBACK');
    if (this.#state !== 'begun') throw new InsideTransactionError(ONLY_ONE);
    if (SET_LEVEL.test(text)) {
      this.#checkMode(text);
      return answerOf('SET');
    }
    if (COMMIT.test(text)) {
      this.#state = 'committing';
      this.#committing.resolve();
      return this.#outcome.promise;
    }
    if (ROLLBACK.test(text)) {
      this.#state = 'rolled-back';
      return answerOf('ROLLBACK');
    }
    return (this.connection.query as Query)(query, values);
  }

  /** Called when the library gives the connection back. */
  release(): void {
    if (this.#state === 'begun') this.#state = 'rolled-back';
  }

  #checkMode(text: string): void {
    if (READ_ONLY.test(text))
      throw new InvalidOptionError(
        'accessMode',
        'of the transaction of a lock cannot be READ ONLY: the lock writes the row of its key.',
      );
    const level = LEVEL.exec(text)?.[1]?.replaceAll(/\s+/g, ' ').toLowerCase();
    if (level === undefined || level === (this.#level ?? 'read committed')) return;
    throw new InvalidOptionError(
      'isolationLevel',
      `of the transaction on \`locks.pool\` is ${level}, and that of the lock is ${this.#level ?? 'the default'}. Give it to ` +
        '`withLock`, whose transaction it is.',
    );
  }
}

/** The answer to a statement that is not sent. */
function answerOf(command: string): PgResult {
  return { command, rowCount: null, rows: [], fields: [] };
}

const NOT_AWAITED =
  'the transaction that was begun on `locks.pool` had not ended when its function returned. Await it in the function.';
const ONLY_ONE =
  'A second transaction was begun on `locks.pool` inside the function of a lock. The first one was the transaction of the ' +
  'lock: do all of the work in it, or take a lock for each.';
const BESIDE_CLIENT =
  'A transaction was begun on `locks.pool` inside the function of a lock that works on its `client`. Use one of them.';
const SETTINGS =
  'The library that began a transaction on `locks.pool` inside the function of a lock had sent a statement on that connection before, ' +
  'such as a SET. It would not hold for the transaction of the lock, which has another one. Send it in the transaction.';
const OUTSIDE =
  'A write was sent on `locks.pool` inside the function of a lock, and outside of its transaction: it would stay when that is ' +
  'rolled back. Send it in the transaction.';

/** What the function of a call returns, once it has. */
export interface Running<R> {
  readonly value: Promise<R>;
}

/** An error behind the COMMIT does not say that the work was rolled back. */
async function behind<R>(value: Promise<R>, { key }: Lock): Promise<R> {
  try {
    return await value;
  } catch (error) {
    throw new HookFailedError(key, undefined, [error], 'the rest of its function');
  }
}

/** The innermost transaction of a lock on this pool whose function the present code runs in. */
function present(pool: PgPool): PoolTransaction | undefined {
  const all = scopes().flatMap(({ inside: { begins } }) => (begins === undefined ? [] : [begins as PoolTransaction]));
  return all.find((own) => own.pool === pool);
}

/**
 * The pool for another library. Outside of locks, all of it is the pool. Inside the function of a lock, a connection whose first
 * statement is BEGIN is that of the lock's transaction; on any other, writes are refused.
 */
export function poolFor<Pool extends PgPool>(pool: Pool): Pool {
  const connect = (callback?: Connect) => {
    const own = present(pool);
    const given = callback === undefined ? [] : [callback];
    if (own === undefined) return (pool.connect as Query).apply(pool, given);
    const client = connectionFor(own, pool);
    if (callback === undefined) return Promise.resolve(client);
    process.nextTick(callback, undefined, client, client.release);
  };
  const query = (...given: unknown[]) => {
    const send = () => (pool as unknown as { readonly query: Query }).query(...given);
    const own = present(pool);
    if (own === undefined || own.isBehind || !writesBySql(textOf(given[0]))) return send();
    return answered(given, () => Promise.reject(new InsideTransactionError(OUTSIDE)));
  };
  return new Proxy(pool, {
    get(target, property) {
      if (property === 'connect') return connect;
      if (property === 'query') return query;
      return Reflect.get(target, property, target);
    },
  });
}

/** A connection that becomes the lock's with BEGIN, or one of the pool with any other first statement. */
function connectionFor(own: PoolTransaction, pool: PgPool): PgClient {
  let isOwn = false;
  let plain: Promise<PgClient> | undefined;
  /** Whether something was sent on the other connection that may hold for its session. */
  let hasSettings = false;
  const send = (query: unknown, values: unknown): unknown => {
    const text = textOf(query);
    if (isOwn) return own.send(query, values);
    if (BEGIN.test(text)) {
      if (hasSettings) throw new InsideTransactionError(SETTINGS);
      own.begin(text);
      isOwn = true;
      return answerOf('BEGIN');
    }
    // Behind a BEGIN that was refused. It must not wait for a connection that the lock itself may have.
    if (plain === undefined && ROLLBACK.test(text)) return answerOf('ROLLBACK');
    return other(text).then((client) => (client.query as Query).call(client, query, values));
  };
  /** Sends a query object, such as a cursor, which pg gives back at once. */
  const submit = (query: Submittable): unknown => {
    if (isOwn) return own.send(query, undefined);
    // It keeps in a queue what is read from it before it is sent.
    other(textOf(query)).then(
      (client) => client.query(query),
      (error: unknown) => query.handleError(error),
    );
    return query;
  };
  /** The connection for what is sent outside of the transaction. */
  const other = (text: string): Promise<PgClient> => {
    if (!own.isBehind && writesBySql(text)) throw new InsideTransactionError(OUTSIDE);
    hasSettings ||= !READS.test(text);
    plain ??= pool.connect();
    return plain;
  };
  const release: PgClient['release'] = (error) => {
    if (isOwn) own.release();
    void plain?.then(
      (client) => client.release(error),
      () => {},
    );
  };
  // What happens to the connection, its statements tell: a library that never takes its listener off would leave one each time.
  const listens = () => client;
  const client: PgClient = Object.assign(Object.create(own.connection) as PgClient, {
    on: listens,
    once: listens,
    off: listens,
    addListener: listens,
    removeListener: listens,
    query: (...given: unknown[]) =>
      isSubmittable(given[0])
        ? submit(given[0])
        : answered(given, async () => await send(given[0], valuesOf(given[1]))),
    release,
  });
  return client;
}

/** Answers by the callback of pg, if there is one, or by a promise. */
function answered(given: readonly unknown[], send: () => Promise<unknown>): unknown {
  const callback = given.find((one): one is Callback => typeof one === 'function');
  if (callback === undefined) return send();
  send().then(
    (result) => callback(undefined, result),
    (error: unknown) => callback(error),
  );
  return undefined;
}

function valuesOf(given: unknown): unknown {
  return Array.isArray(given) ? given : undefined;
}

/** @param query a text, a configuration or a query object; a stream has a cursor inside. */
function textOf(query: unknown): string {
  if (typeof query === 'string') return query;
  const { text, cursor } = (query ?? {}) as { readonly text?: unknown; readonly cursor?: { readonly text?: unknown } };
  return String(text ?? cursor?.text ?? '');
}
