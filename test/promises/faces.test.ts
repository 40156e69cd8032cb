import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, test } from 'vitest';
import { CommitUnknownError, LockLostError, StaleTokenError, TransactionAbortedError } from '../../src/index.js';
import { forget } from '../call/handle-work.js';
import { type Actor, FACES, type Face, guardedShop, sells } from '../support/faces.js';
import { proxyTo } from '../support/proxied.js';
import { withDatabase } from '../support/servers/index.js';
import { describeWithShop, gate, type Shop } from '../support/shop.js';
import { expectTold, LOST_COMMITS } from './lost-commits.js';

/*
 * Where each promise is shown (docs/correctness.md). What all faces promise is shown on each of them, here; the other files go on
 * with Prisma's client, and test/faces with what only one of them has.
 *
 * | promise                                                    | file                                                  |
 * | ---------------------------------------------------------- | ----------------------------------------------------- |
 * | G1: serial, in token order                                 | faces, g1-serial, and with COMMIT: test/call/chain    |
 * | G2: a row never goes back                                  | faces, g2-rows                                        |
 * | G3: what the caller is told is what became of the work     | faces, g3-outcome, errors                             |
 * | G4: a waiting caller costs nothing                         | faces, g4-waiting                                     |
 * | G5: a crash delays the others by the lease                 | g5-crash, g5-clocks                                   |
 * | a lock inside a lock joins it, or is refused               | faces, context                                        |
 * | each error code; each option                               | errors; options                                       |
 * | hooks tell the outcome; $oncePer runs once                 | faces, test/call/after-commit; test/call/once-per     |
 * | a handle keeps its token; operators; shutdown              | faces, test/call/handles*; test/call/operators, shutdown |
 */

const NAME = 'promises_of_faces';

/**
 * The interleaving in which a condition on the written row alone loses an update: the contender has its turn
 * although the holder's work goes on, because Redis has let both in (here: they do not even share their names).
 */
async function bothLetIn(face: Face, shop: Shop, quantity: number, id: number, key: string): Promise<void> {
  const holder = face(shop, { keyPrefix: 'one-side:' });
  const contender = face(shop, { keyPrefix: 'other-side:' });
  const [read, goOn, contenderRead] = [gate(), gate(), gate()];
  const waits = () => {
    read.open();
    return goOn.opened;
  };
  const held = holder.locks.withLock(key, sells(holder, id, waits));
  await read.opened;
  const reads = () => {
    contenderRead.open();
    return held;
  };
  const contended = contender.locks.withLock(key, sells(contender, id, reads));
  // Either it waits in its admission, or nothing keeps it out and it has read.
  await Promise.race([shop.blocked('fenced_lock.admit'), contenderRead.opened]);
  goOn.open();
  await Promise.all([held, contended]);
  expect((await shop.row(id))?.quantity).toBe(quantity - 2);
}

describeWithShop('what every face promises', () => {
  const shop = guardedShop(NAME);

  describe.each(Object.entries<Face>(FACES))('%s', (_, face) => {
    let actor: Actor;
    let other: Actor;
    const left = async (id: number) => (await shop.row(id))?.quantity;
    const inside: () => Promise<never> = () => new Promise(() => {});

    test.beforeAll(() => {
      actor = face(shop);
      other = face(shop);
    });

    test('G1: read-modify-write by 20 callers of two actors loses no update, and tokens rise', async () => {
      const { id, key } = await shop.product(100);
      const sell = (who: Actor) =>
        who.locks.withLock(key, async (tx, { token }) => ({ token, left: await sells(who, id)(tx) }));
      const sales = await Promise.all(Array.from({ length: 20 }, (_, index) => sell(index % 2 ? other : actor)));
      const inTokenOrder = sales.toSorted((a, b) => (a.token < b.token ? -1 : 1));
      expect(inTokenOrder.map(({ left }) => left)).toEqual(Array.from({ length: 20 }, (_, index) => 99 - index));
      expect(await shop.row(id)).toEqual({ quantity: 80, fence: inTokenOrder.at(-1)?.token });
    });

    test('G1: two holders that Redis let in at once lose no update', async () => {
      const { id, key } = await shop.product(10);
      await bothLetIn(face, shop, 10, id, key);
    });

    test.each(['RepeatableRead', 'Serializable'] as const)(
      'G1: under %s a snapshot older than the turn before is begun again, not read from',
      async (isolationLevel) => {
        const { id, key } = await shop.product(10);
        const actors = [face(shop, { keyPrefix: 'one-side:' }), face(shop, { keyPrefix: 'other-side:' })];
        const sell = (who: Actor) => who.locks.withLock(key, sells(who, id), { isolationLevel });
        await Promise.all(actors.flatMap((who) => Array.from({ length: 5 }, () => sell(who))));
        expect(await left(id)).toBe(0);
      },
    );

    test('G2: the refusal of the guard arrives as StaleTokenError, and forbids a commit though it is swallowed', async () => {
      const { id, key } = await shop.product(10);
      const own = await shop.product(10);
      const fresher = (quantity: number) =>
        other.locks.withLock(`${key}:other`, (tx) => other.write(tx, id, quantity), { nested: 'allow' });
      const stale = { constructor: StaleTokenError, code: 'STALE_TOKEN', key, reason: 'other-key' };
      const refused = actor.locks.withLock(key, async (tx) => {
        await fresher(7);
        await actor.write(tx, id, 1);
      });
      await expect(refused).rejects.toMatchObject(stale);
      const swallowed = actor.locks.withLock(key, async (tx) => {
        await fresher(6);
        await actor.write(tx, own.id, 1);
        await actor.write(tx, id, 1).catch(() => {});
      });
      await expect(swallowed).rejects.toMatchObject(stale);
      expect([await left(id), await left(own.id)]).toEqual([6, 10]);
    });

    test('G3: the caller is told what became of its work, however the answer to COMMIT is lost', async () => {
      const { app } = inject('postgres');
      const url = withDatabase(app, NAME);
      await Promise.all(Object.values(LOST_COMMITS).map((loss) => expectTold(shop, loss, url, url, face)));
    });

    test('G3: where Postgres has no evidence any more, the outcome is reported as unknown', async () => {
      const url = withDatabase(inject('postgres').admin, NAME);
      const proxy = await proxyTo(url);
      const superuser = face(shop, { rescue: url, pool: { connectionString: proxy.url(url) } });
      shop.closeLater(() => proxy.close());
      const { key } = await shop.product(10);
      void proxy.cutAfterCommit();
      const heard: unknown[] = [];
      const held = superuser.locks.withLock(key, async (tx, lock) => {
        lock.onUnknown((error) => heard.push(error));
        await shop.admin.query('UPDATE fenced_lock.epoch SET id = gen_random_uuid()');
        await superuser.raw(tx, `DELETE FROM fenced_lock.admission WHERE key = '${key}'`);
      });
      const error = await held.catch((error: unknown) => error);
      expect(error).toBeInstanceOf(CommitUnknownError);
      expect(heard).toEqual([error]);
    });

    test('G3: an error of the function passes through, and what it wrote is rolled back', async () => {
      const { id, key } = await shop.product(10);
      const noSale = new Error('no sale', { cause: new LockLostError(key, 'gone') });
      const held = actor.locks.withLock(key, async (tx) => {
        await actor.write(tx, id, 1);
        throw noSale;
      });
      expect(await held.catch((error: unknown) => error)).toBe(noSale);
      expect(await left(id)).toBe(10);
    });

    test('G3: work that fails with 40001 is run again by `retries`, and nothing of the first run stays', async () => {
      const { id, key } = await shop.product(10);
      let runs = 0;
      const sell = async (tx: unknown) => {
        await sells(actor, id)(tx);
        if (++runs === 1) await actor.raw(tx, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$");
      };
      await actor.locks.withLock(key, sell, { retries: 1 });
      expect([runs, await left(id)]).toEqual([2, 9]);
    });

    test('G4: 50 waiters take no connection of the pool', async () => {
      const { id, key } = await shop.product(51);
      const application_name = `waiters ${id}`;
      const rescue = withDatabase(inject('postgres').app, NAME);
      const crowd = face(shop, { pool: { max: 2, application_name }, rescue });
      const [begun, goOn] = [gate(), gate()];
      const first = async () => {
        begun.open();
        await goOn.opened;
      };
      const held = crowd.locks.withLock(key, sells(crowd, id, first));
      await begun.opened;
      const waiters = Array.from({ length: 50 }, () => crowd.locks.withLock(key, sells(crowd, id)));
      // The second and last connection is free for a bystander, again and again.
      for (let request = 0; request < 10; request++) await crowd.beside('SELECT 1');
      const { rows } = await shop.admin.query(
        `SELECT count(*) FILTER (WHERE state LIKE 'idle in transaction%')::int AS working, count(*)::int AS all
         FROM pg_stat_activity WHERE application_name = $1`,
        [application_name],
      );
      expect(rows).toEqual([{ working: 1, all: 2 }]);
      goOn.open();
      await Promise.all([held, ...waiters]);
      expect(await left(id)).toBe(0);
    });

    test('the loss of the lease tells the signal, and rolls back', async () => {
      const { id, key } = await shop.product(10);
      let reason: unknown;
      const held = actor.locks.withLock(
        key,
        async (tx, { signal }) => {
          await actor.write(tx, id, 1);
          signal.addEventListener('abort', () => {
            reason = signal.reason;
          });
          await forget(shop, key);
          await inside();
        },
        { leaseTime: 300 },
      );
      const error = await held.catch((error: unknown) => error);
      expect(error).toBeInstanceOf(LockLostError);
      expect(reason).toBe(error);
      expect(await other.locks.withLock(key, (tx) => other.read(tx, id))).toBe(10);
    });

    test('a lock inside a lock of its key joins it, and ends with the outermost', async () => {
      const { id, key } = await shop.product(10);
      const inner = (token: bigint) =>
        actor.locks.withLock(key, async (tx, lock) => {
          expect(lock.token).toBe(token);
          await actor.write(tx, id, (await actor.read(tx, id)) - 1);
        });
      await actor.locks.withLock(key, async (tx, { token }) => {
        await actor.write(tx, id, 5);
        await inner(token);
        expect(await left(id)).toBe(10);
        expect(await actor.read(tx, id)).toBe(4);
      });
      expect(await left(id)).toBe(4);
      const failed = actor.locks.withLock(key, async (_, { token }) => {
        await inner(token);
        throw new Error('no sale');
      });
      await expect(failed).rejects.toThrow('no sale');
      expect(await left(id)).toBe(4);
    });

    test('a handle has one token for all of its transactions, also in another process, and is stale here from then on', async () => {
      const { id, key } = await shop.product(10);
      // Its next renewal would find it out before.
      const handle = await actor.locks.lock(key, { leaseTime: 60_000 });
      for (let sale = 0; sale < 2; sale++) await handle.$transaction(sells(actor, id));
      const resumed = await other.locks.resumeLock(JSON.parse(JSON.stringify(handle)));
      await resumed.$transaction(sells(other, id));
      expect(await shop.row(id)).toEqual({ quantity: 7, fence: handle.token });
      const late = handle.$transaction(sells(actor, id));
      await expect(late).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded' });
      // The release of the old one is none of the new one's.
      await handle.release();
      expect(await actor.locks.tryWithLock(key, () => 'in')).toEqual({ acquired: false });
      await resumed.release();
      expect(await actor.locks.tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
      expect(await left(id)).toBe(7);
    });

    test('once per interval runs what others have not, and a run that was rolled back does not count', async () => {
      const { id, key } = await shop.product(10);
      const offset = (Date.now() - 60_000) % 3_600_000;
      const run = (who: Actor, work: (tx: unknown) => unknown) => who.locks.oncePer(key, 3_600_000, work, { offset });
      const fails = async (tx: unknown) => {
        await actor.write(tx, id, 1);
        throw new Error('no sale');
      };
      await expect(run(actor, fails)).rejects.toThrow('no sale');
      expect(await run(actor, sells(actor, id))).toEqual({ ran: true, value: 9 });
      expect(await run(other, sells(other, id))).toMatchObject({ ran: false, busy: false });
      expect(await left(id)).toBe(9);
    });

    test('hooks run when the outcome can be seen and the lock is free', async () => {
      const { id, key } = await shop.product(10);
      const seen: unknown[] = [];
      const looks = async () => seen.push(await other.locks.withLock(key, (tx) => other.read(tx, id)));
      const sell = (fails: boolean) =>
        actor.locks.withLock(key, async (tx, lock) => {
          lock.afterCommit(() => seen.push('committed'));
          lock.afterRollback(() => seen.push('rolled back'));
          lock.afterCommit(looks);
          lock.afterRollback(looks);
          await actor.write(tx, id, 9);
          if (fails) throw new Error('no sale');
        });
      await expect(sell(true)).rejects.toThrow('no sale');
      await sell(false);
      expect(seen).toEqual(['rolled back', 10, 'committed', 9]);
    });

    test('what the function did not await rolls all of it back, and nothing of it is written later', async () => {
      const { id, key } = await shop.product(10);
      let forgotten: Promise<unknown> = Promise.resolve();
      const held = actor.locks.withLock(key, async (tx) => {
        await actor.write(tx, id, 5);
        forgotten = (async () => {
          await actor.write(tx, id, 4);
          await sleep(1);
          await actor.write(tx, id, 3);
        })();
        forgotten.catch(() => {});
      });
      await expect(held).rejects.toMatchObject({ constructor: TransactionAbortedError, reason: 'not-awaited', key });
      await expect(forgotten).rejects.toThrow();
      expect(await left(id)).toBe(10);
    });
  });

  describe('where the admission draws a token without taking the row (control)', () => {
    const broken = guardedShop('without_admission');

    test('two holders at once lose an update', async () => {
      await broken.admin.query(WITHOUT_ROW);
      const { id, key } = await broken.product(10);
      await expect(bothLetIn(FACES.pg, broken, 10, id, key)).rejects.toThrow('expected 9 to be 8');
    });
  });
});

const WITHOUT_ROW = `
  CREATE OR REPLACE FUNCTION fenced_lock.admit(
    our_key text, our_holder uuid, attempt uuid, lease_time integer, work_time integer, wait_time integer, room integer
  ) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT concat_ws(' ', 1, pg_current_xact_id(), pg_backend_pid(), '-', nextval('fenced_lock.token'), '-')
  $$`;
