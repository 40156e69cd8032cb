import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { fencedLocks as kyselyLocks } from '../../../../src/faces/kysely.js';
import { type FencedLocks, type FencedLocksOptions, fencedLocks } from '../../../../src/faces/pg.js';
import type { LockHandle } from '../../../../src/index.js';
import type { WorkTx } from '../turn.js';
import type { LockingClient } from './client.js';

/** What a process takes its locks through. */
export type FaceName = 'prisma' | 'pg' | 'kysely';

type Send = (text: string, values: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;

/** The names as Prisma writes them: by these texts the faults at a step know it. */
const workOn = (send: Send): WorkTx => ({
  stock: {
    async findUniqueOrThrow({ where: { id } }) {
      const { rows } = await send('SELECT "public"."Stock"."quantity" FROM "public"."Stock" WHERE id = $1', [id]);
      return rows[0] as { quantity: number };
    },
    update: ({ where: { id }, data }) =>
      send('UPDATE "public"."Stock" SET quantity = $2 WHERE id = $1', [id, data.quantity]),
  },
  ledger: {
    create: ({ data: { key, token, before, after, worker, once } }) =>
      send('INSERT INTO "public"."Ledger" (key, token, before, after, worker, once) VALUES ($1, $2, $3, $4, $5, $6)', [
        key,
        token,
        before,
        after,
        worker,
        once,
      ]),
  },
});

/** The locks of a face, as the ways know them from Prisma's client. */
function asClient<Tx>(locks: FencedLocks<Tx>, sendOn: (tx: Tx) => Send): LockingClient {
  type Fn = (tx: WorkTx, lock: never) => unknown;
  const on = (fn: Fn) => (tx: Tx, lock: unknown) => fn(workOn(sendOn(tx)), lock as never);
  const ofHandle = (handle: LockHandle<Tx>) => {
    const begin = handle.$transaction.bind(handle);
    return Object.assign(handle, { $transaction: (fn: Fn, options?: never) => begin(on(fn), options) });
  };
  const client = {
    $withLock: (key: string, fn: Fn, options?: never) => locks.withLock(key, on(fn), options),
    $tryWithLock: (key: string, fn: Fn, options?: never) => locks.tryWithLock(key, on(fn), options),
    $lock: async (key: string, options?: never) => ofHandle(await locks.lock(key, options)),
    $resumeLock: async (state: never) => ofHandle(await locks.resumeLock(state)),
    $locks: locks.locks,
  };
  return client as unknown as LockingClient;
}

export function faceClient(
  face: Exclude<FaceName, 'prisma'>,
  connectionString: string,
  given: Omit<FencedLocksOptions, 'pool'>,
): LockingClient {
  const pool = new pg.Pool({ connectionString, max: 8 });
  // Servers are killed on purpose.
  pool.on('error', () => {});
  const options = { ...given, pool };
  if (face === 'pg')
    return asClient(fencedLocks(options), (client) => (text, values) => client.query(text, [...values]));
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  return asClient(
    kyselyLocks({ ...options, db }),
    (trx) => (text, values) => trx.executeQuery(CompiledQuery.raw(text, [...values])),
  );
}
