import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { RunningHooks } from '../../src/call/hooks.js';
import type { Work } from '../../src/call/lock.js';
import type { Parts } from '../../src/call/parts.js';
import { withLock } from '../../src/call/with-lock.js';
import { type PlainTx, poolDatabase, queryOver } from '../../src/connection/pool-database.js';
import { Fencing } from '../../src/fencing/fencing.js';
import { BUILT_IN, DEFAULTS, type ResolvedLockOptions } from '../../src/options/options.js';
import { RedisStore } from '../../src/redis/store.js';
import { Renewal } from '../../src/waiting/renewal.js';
import { WaitingRoom } from '../../src/waiting/room.js';
import { FenceWorld } from '../support/fence-world.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('$withLock over a bare pool of pg, without Prisma', () => {
  const world = new FenceWorld('lock_plain', 'allow');

  /** One process with a pool and a Redis client of its own. */
  function participant(given: Partial<ResolvedLockOptions> = {}) {
    const pool = new pg.Pool({ connectionString: world.url, max: 2 });
    const rescue = new pg.Pool({ connectionString: world.url, max: 1 });
    const redis = new Redis(inject('redis').url as string);
    const emit = () => {};
    const store = new RedisStore(redis as never, { keyPrefix: 'plain:', commandTimeout: 1_000 }, emit);
    const renewal = new Renewal(store);
    const room = new WaitingRoom(store, renewal, emit, DEFAULTS);
    onTestFinished(async () => {
      await room.close();
      renewal.close();
      await store.close();
      redis.disconnect();
      await Promise.all([pool.end(), rescue.end()]);
    });
    const database = poolDatabase(pool, queryOver(rescue));
    const parts: Parts = {
      name: 'plain',
      room,
      roomId: 7,
      handles: new Set(),
      hooks: new RunningHooks(),
      fencing: new Fencing('fence', new Set(), new Map()),
      lookout: database.rescue,
      emit,
    };
    const options = { ...BUILT_IN, ...given };
    const client = {};
    return <R>(key: string, work: Work<PlainTx, R>) =>
      withLock(parts, { client, database, keys: [key], options, given: {} }, work);
  }

  async function tag(): Promise<string> {
    const name = `tag ${randomUUID()}`;
    await world.admin.query('INSERT INTO people."Tag" (name, value) VALUES ($1, 0)', [name]);
    return name;
  }

  test('the callers of two processes lose no update, and mostly follow each other on one connection', async () => {
    const name = await tag();
    const processes = [participant(), participant()] as const;
    const tokens: bigint[] = [];
    const pids: unknown[] = [];
    const turn: Work<PlainTx, void> = async (tx, { token }) => {
      tokens.push(token);
      const text = 'SELECT value, pg_backend_pid() AS pid FROM people."Tag" WHERE name = $1';
      const [row] = (await tx.query({ text, values: [name] })).rows;
      pids.push(row?.['pid']);
      const values = [Number(row?.['value']) + 1, name];
      await tx.query({ text: 'UPDATE people."Tag" SET value = $1 WHERE name = $2', values });
    };
    await Promise.all(processes.flatMap((locked) => Array.from({ length: 40 }, () => locked(name, turn))));
    const { rows } = await world.admin.query('SELECT value, fence FROM people."Tag" WHERE name = $1', [name]);
    const last = tokens.at(-1);
    expect(rows).toEqual([{ value: 80, fence: String(last) }]);
    expect(tokens).toEqual([...tokens].sort((a, b) => Number(a - b)));
    expect(pids.filter((pid, at) => pid === pids[at - 1]).length).toBeGreaterThan(40);
  });

  test('work that throws is rolled back, its hook hears why, and the lease is released', async () => {
    const name = await tag();
    // So long that whoever had to wait for its end would not get in.
    const longer = { leaseTime: 120_000 };
    const locked = participant(longer);
    const heard: unknown[] = [];
    const own = new Error('no sale');
    const held = locked(name, async (tx, lock) => {
      lock.afterRollback((error) => heard.push(error));
      await tx.query({ text: 'UPDATE people."Tag" SET value = 9 WHERE name = $1', values: [name] });
      throw own;
    });
    await expect(held).rejects.toBe(own);
    expect(heard).toEqual([own]);
    const { rows } = await world.admin.query('SELECT value FROM people."Tag" WHERE name = $1', [name]);
    expect(rows).toEqual([{ value: 0 }]);
    expect(await participant(longer)(name, () => 'in')).toBe('in');
  });
});
