import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { startWorker, type Worker } from '../support/worker.js';

/** How long the workers run; the full length is 300. */
const SECONDS = Number(process.env['AFTER_COMMIT_SECONDS'] ?? 20);
const WORKERS = 3;
/** At most; three leases of the workers; ms. */
const FROZEN_FOR = 1_500;

/** What became of one operation. */
interface Row {
  readonly id: string;
  readonly committed: boolean;
  /** How often its hooks have run. */
  readonly commits: number;
  readonly rollbacks: number;
  readonly unknowns: number;
}

describeWithShop('hooks and $oncePer among faults', () => {
  let postgres: PostgresServer;
  let app: string;
  const own = new Shop(() => ({ postgres: app, admin: postgres.url, redis: inject('redis').url as string }));

  test.beforeAll(async () => {
    postgres = await startPostgres();
    own.closeLater(() => postgres.stop());
    app = await setUpShop(postgres);
  }, 60_000);

  test(
    `afterCommit runs once for what was told as committed, and never else; a job once in an interval (${SECONDS} s)`,
    async () => {
      await own.admin.query(`
        CREATE TABLE work (id uuid, refuse boolean);
        CREATE TABLE outbox (run uuid PRIMARY KEY, id uuid, hook text);
        GRANT SELECT, INSERT ON work, outbox TO shop_app;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF NEW.refuse THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON work DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION refuse();
        CREATE TABLE marks (ran_at timestamptz, xid xid8);
        CREATE FUNCTION keep_mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO public.marks VALUES (NEW.ran_at, pg_current_xact_id()); RETURN NULL; END $$;
        -- A run is marked by the second of two upserts; the first one finds the row.
        CREATE TRIGGER keep AFTER UPDATE ON fenced_lock.last_run FOR EACH ROW
          WHEN (OLD.ran_at <> NEW.ran_at) EXECUTE FUNCTION keep_mark();
        ALTER TABLE "Ledger" ADD xid xid8 DEFAULT pg_current_xact_id()`);
      const proxy = await startFaultProxy({ host: postgres.host, port: postgres.port });
      own.closeLater(() => proxy.close());
      const keys = Array.from({ length: 4 }, () => `work:${randomUUID()}`);
      const args = [proxy.url(app), app, inject('redis').url as string, `job:${randomUUID()}`, ...keys];
      const start = () => startWorker(new URL('./outbox.worker.ts', import.meta.url), args);
      const workers = Array.from({ length: WORKERS }, start);
      const dead: Worker[] = [];
      let [cut, frozen, restarts] = [0, 0, 0];
      const end = performance.now() + SECONDS * 1_000;
      const restartEvery = Math.min(SECONDS / 2, 30) * 1_000;
      let restartAt = performance.now() + restartEvery / 2;
      try {
        await Promise.all(workers.map((worker) => worker.next('told')));
        while (performance.now() < end) {
          const fault = Math.random();
          const place = Math.floor(Math.random() * WORKERS);
          const worker = workers[place] as Worker;
          const within = (done: Promise<void>) => Promise.race([done.then(() => cut++), sleep(1_000)]);
          if ('dir' in postgres && performance.now() > restartAt) {
            restartAt += restartEvery;
            await postgres.restart();
            restarts++;
          } else if (fault < 0.35) await within(proxy.cutAfterCommit());
          else if (fault < 0.7) await within(proxy.cutBeforeCommit());
          else if (fault < 0.8) proxy.reset();
          else if (fault < 0.9) {
            worker.freeze();
            await sleep(FROZEN_FOR * Math.random());
            worker.thaw();
            frozen++;
          } else {
            await worker.kill();
            dead.push(worker);
            workers[place] = start();
          }
          await sleep(Math.random() * 300);
        }
        for (const worker of workers) worker.send({ type: 'rest' });
        await Promise.all(workers.map((worker) => worker.next('done', { within: 40_000 })));
      } finally {
        await Promise.all(workers.map((worker) => worker.kill()));
      }
      const told = new Map<string, string>();
      for (const worker of [...workers, ...dead])
        for (const { id, told: what } of await allOf(worker)) told.set(id, what);
      // One pass over each table: a long run has tens of thousands of rows.
      const { rows } = await own.admin.query<Row>(`
        SELECT id, w.refuse IS NOT NULL AS committed, coalesce(o.commits, 0) AS commits,
          coalesce(o.rollbacks, 0) AS rollbacks, coalesce(o.unknowns, 0) AS unknowns
        FROM work AS w FULL JOIN (
          SELECT id, count(*) FILTER (WHERE hook = 'afterCommit')::int AS commits,
            count(*) FILTER (WHERE hook = 'afterRollback')::int AS rollbacks,
            count(*) FILTER (WHERE hook = 'onUnknown')::int AS unknowns
          FROM outbox GROUP BY id
        ) AS o USING (id)`);
      const known = new Map(rows.map((row) => [row.id, row]));
      const outcomes = (what: string) =>
        [...told].filter(([, outcome]) => outcome === what).map(([id]) => known.get(id));
      console.log(
        `${rows.filter(({ committed }) => committed).length} committed, ${outcomes('error').length} told as failed, ` +
          `${outcomes('unknown').length} unknown, ${cut} commits cut off, ${dead.length} processes killed, ${frozen} frozen, ` +
          `${restarts} restarts of Postgres`,
      );
      expect(rows.filter((row) => row.commits > 0 && !row.committed)).toEqual([]);
      expect(rows.filter((row) => row.rollbacks > 0 && row.committed && row.commits === 0)).toEqual([]);
      expect(rows.filter((row) => row.commits + row.unknowns > 1)).toEqual([]);
      expect(outcomes('ok').filter((row) => row?.commits !== 1 || !row.committed)).toEqual([]);
      expect(outcomes('error').filter((row) => row !== undefined && (row.commits > 0 || row.committed))).toEqual([]);
      expect(outcomes('ok').length).toBeGreaterThan(SECONDS);
      expect(outcomes('error').filter((row) => row !== undefined && row.rollbacks > 0).length).toBeGreaterThan(0);
      expect(cut).toBeGreaterThan(0);
      // What was cut off may still be there for a moment.
      await own.admin.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'shop_app'`);
      const { rows: runs } = await own.admin.query<{ interval: number; rows: number }>(`
        SELECT floor(extract(epoch FROM m.ran_at))::float8 AS interval,
          (SELECT count(*)::int FROM "Ledger" AS l WHERE l.xid = m.xid) AS rows
        FROM marks AS m ORDER BY m.ran_at`);
      expect(new Set(runs.map(({ interval }) => interval)).size).toBe(runs.length);
      expect(runs.filter(({ rows }) => rows !== 1)).toEqual([]);
      expect((await own.admin.query('SELECT FROM "Ledger"')).rowCount).toBe(runs.length);
      expect(runs.length).toBeGreaterThan(SECONDS / 4);
    },
    (SECONDS + 90) * 1_000,
  );
});

/** Everything that it has told and that nobody has taken. */
async function allOf(worker: Worker): Promise<{ id: string; told: string }[]> {
  const all: { id: string; told: string }[] = [];
  for (;;) {
    const next = await worker
      .next<{ type: string; id: string; told: string }>('told', { within: 0 })
      .catch(() => undefined);
    if (next === undefined) return all;
    all.push(next);
  }
}
