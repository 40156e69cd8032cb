import { randomUUID } from 'node:crypto';
import pg from 'pg';
import oldPg from 'pg-8.16';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import { StaleTokenError } from '../../src/base/errors.js';
import { LazyAbort } from '../../src/base/lazy-abort.js';
import { type PlainTx, poolDatabase, queryOver } from '../../src/connection/pool-database.js';
import type { Connection, Database } from '../../src/database/database.js';
import { Fencing } from '../../src/fencing/fencing.js';
import { type Admission, admissionRequest } from '../../src/transaction/admission.js';
import type { Call } from '../../src/transaction/call.js';
import { Opening, type OpeningInput } from '../../src/transaction/opening.js';
import { fencedTransaction } from '../../src/transaction/transaction.js';
import { eventually } from '../support/eventually.js';
import { FenceWorld } from '../support/fence-world.js';
import { gate } from '../support/shop.js';

type Work<R> = (tx: PlainTx, admission: Admission) => Promise<R>;

describe.each([
  ['pg', 'fence_plain', pg],
  ['the oldest pg that the adapter of Prisma takes', 'fence_plain_old', oldPg],
])('the fence over a bare pool of %s, without Prisma', (_, name, { Pool }) => {
  const world = new FenceWorld(name, 'allow');
  const { app } = inject('postgres');
  const connectionString = Object.assign(new URL(app), { pathname: `/${name}` }).href;
  let pool: pg.Pool;
  let database: Database<PlainTx>;

  beforeAll(() => {
    pool = new Pool({ connectionString, max: 2 });
    const rescue = new Pool({ connectionString, max: 1 });
    database = poolDatabase(pool, queryOver(rescue));
    afterAll(() => Promise.all([pool.end(), rescue.end()]));
  });

  /** A call that has the lease of `key`. */
  function callOf<R>(key: string, work: Work<R>, more: Partial<Call<PlainTx, R>> = {}): Call<PlainTx, R> {
    const leases = {
      keys: [key],
      key,
      holders: [randomUUID()],
      leaseTime: 30_000,
      shared: false,
      age: 0,
      loss: undefined,
      checkExpiry: () => {},
      show: () => {},
      attach: () => {},
      detach: () => {},
    };
    const limits = { waitTime: 5_000, timeout: 5_000, retries: 0 };
    const options = { ...limits, signal: undefined, maxWait: undefined, isolationLevel: undefined };
    const fencing = new Fencing('fence', new Set(), new Map());
    const room = { untilAdmitted: () => () => {} };
    const parts = {
      fencing,
      emit: () => {},
      roomId: 0,
      room,
    };
    const rest = { takes: { foundAt: undefined }, abort: new LazyAbort() };
    return { parts, database, leases, options, deadline: new Deadline(5_000), work, ...rest, ...more };
  }

  function inputFor(key: string): OpeningInput<PlainTx> {
    return { ...callOf(key, () => Promise.resolve()), room: undefined, waitTime: () => 500 };
  }

  async function tag(): Promise<string> {
    const name = `tag ${randomUUID()}`;
    await world.admin.query('INSERT INTO people."Tag" (name, value) VALUES ($1, 1)', [name]);
    return name;
  }

  async function rowOf(name: string): Promise<unknown> {
    const { rows } = await world.admin.query('SELECT value, fence FROM people."Tag" WHERE name = $1', [name]);
    return rows[0];
  }

  const write = (tx: PlainTx, name: string, value: number) =>
    tx.query({ text: 'UPDATE people."Tag" SET value = $1 WHERE name = $2', values: [value, name] });

  const pidOf = async (tx: PlainTx) => (await tx.query({ text: 'SELECT pg_backend_pid() AS pid' })).rows[0]?.['pid'];

  test('commits what the work wrote, with the token of its admission', async () => {
    const name = await tag();
    const token = await fencedTransaction(
      callOf(name, async (tx, admission) => {
        await write(tx, name, 2);
        return admission.token;
      }),
    );
    expect(await rowOf(name)).toEqual({ value: 2, fence: String(token) });
    const { rows } = await world.admin.query('SELECT token FROM fenced_lock.admission WHERE key = $1', [name]);
    expect(rows).toEqual([{ token: String(token) }]);
  });

  test('a write to a fresher row is refused, and cannot be swallowed', async () => {
    const name = await tag();
    await world.overriding((session) =>
      session.query('UPDATE people."Tag" SET fence = 9000000000000000000 WHERE name = $1', [name]),
    );
    const held = fencedTransaction(callOf(name, (tx) => write(tx, name, 2).catch(() => 'swallowed')));
    await expect(held).rejects.toMatchObject({ constructor: StaleTokenError, reason: 'other-key' });
    expect(await rowOf(name)).toMatchObject({ value: 1 });
  });

  test('a transaction that something else has ended is told by the server’s status, and nothing more is sent', async () => {
    const name = await tag();
    const client = new Promise<pg.PoolClient>((resolve) => pool.once('acquire', resolve));
    const held = fencedTransaction(
      callOf(name, async (tx) => {
        await (await client).query('ROLLBACK');
        await tx.query({ text: 'SELECT 1' });
        await write(tx, name, 2).catch(() => {});
      }),
    );
    await expect(held).rejects.toMatchObject({ key: name });
    expect(await rowOf(name)).toEqual({ value: 1, fence: '0' });
  });

  /** A transaction that is opened as it is beside the look in Redis. */
  const beside = (key: string, more: Partial<OpeningInput<PlainTx>> = {}) => new Opening({ ...inputFor(key), ...more });

  test('one that is discarded with its admission under way is rolled back, and is in nobody’s way', async () => {
    const name = await tag();
    const opening = beside(name);
    await opening.admission;
    opening.discard();
    await fencedTransaction(callOf(name, (tx) => write(tx, name, 2)));
    expect(await rowOf(name)).toMatchObject({ value: 2 });
    expect(pool.idleCount).toBe(pool.totalCount);
  });

  /** The turn behind `key`, that begins with the COMMIT of the one before it. */
  function chained(key: string) {
    const sent = gate<Connection>();
    const input = inputFor(key);
    const request = admissionRequest(input);
    return {
      nextTurn: () => ({ request, onSent: sent.open }),
      opening: sent.opened.then((connection) => new Opening(input, { request, connection })),
    };
  }

  test('the next turn begins with the COMMIT before it, on its connection, and sees what that one committed', async () => {
    const name = await tag();
    const { nextTurn, opening } = chained(name);
    const first = callOf(
      name,
      async (tx, { token }) => {
        await write(tx, name, 2);
        return { token, pid: await pidOf(tx) };
      },
      { nextTurn, handover: { hint: () => undefined, runsAgain: () => {}, release: () => {} } },
    );
    const before = await fencedTransaction(first);
    const after = await fencedTransaction(
      callOf(
        name,
        async (tx, { token }) => {
          const { rows } = await tx.query({ text: 'SELECT value FROM people."Tag" WHERE name = $1', values: [name] });
          return { token, pid: await pidOf(tx), rows };
        },
        { opening: await opening },
      ),
    );
    expect(after).toEqual({ token: expect.any(BigInt), pid: before.pid, rows: [{ value: 2 }] });
    expect(after.token).toBeGreaterThan(before.token);
    await eventually('both are back', async () => pool.idleCount === pool.totalCount);
  });

  test('a turn behind a COMMIT that Postgres refused begins anew', async () => {
    const name = await tag();
    await world.admin.query(`
      CREATE TABLE IF NOT EXISTS people.late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
      GRANT INSERT ON people.late TO PUBLIC; TRUNCATE people.late; INSERT INTO people.late VALUES (1)`);
    const { nextTurn, opening } = chained(name);
    const refused = callOf(name, (tx) => tx.query({ text: 'INSERT INTO people.late VALUES (1)' }), {
      nextTurn,
      handover: { hint: () => undefined, runsAgain: () => {}, release: () => {} },
    });
    await expect(fencedTransaction(refused)).rejects.toMatchObject({ cause: { code: '23505' } });
    await fencedTransaction(callOf(name, (tx) => write(tx, name, 3), { opening: await opening }));
    expect(await rowOf(name)).toMatchObject({ value: 3 });
    expect(pool.idleCount).toBe(pool.totalCount);
  });

  test('no hint is sent where a statement has failed, because the answer to COMMIT will be ROLLBACK', async () => {
    const hint = vi.fn();
    const handover = { hint, runsAgain: () => {}, release: () => {} };
    const run = (sql: string) => (tx: PlainTx) => tx.query({ text: sql }).catch(() => {});
    const key = `stock:${randomUUID()}`;
    await expect(fencedTransaction(callOf(key, run('SELECT 1 / 0'), { handover }))).rejects.toThrow(
      'a statement in it',
    );
    expect(hint).not.toHaveBeenCalled();
    await fencedTransaction(callOf(key, run('SELECT 1'), { handover }));
    expect(hint).toHaveBeenCalledTimes(1);
  });
});
