import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { startWorker } from '../support/worker.js';

/** How long the workers run; the full length is 120. */
const SECONDS = Number(process.env['ONCE_PER_SECONDS'] ?? 20);
const INTERVAL = 1_000;
/** So that the next one can repeat what a killed one has begun, in the same interval. */
const LEASE = 300;
const WORKERS = 5;

describeWithShop('$oncePer in several processes, among faults', () => {
  let postgres: PostgresServer;
  let app: string;
  const shop = new Shop(() => ({ postgres: app, admin: postgres.url, redis: inject('redis').url as string }));

  test.beforeAll(async () => {
    postgres = await startPostgres();
    shop.closeLater(() => postgres.stop());
    app = await setUpShop(postgres);
  }, 60_000);

  test(
    `each interval has at most one committed run, with all of its work; most have one (${SECONDS} s)`,
    async () => {
      // Each mark is kept, with the transaction that wrote it.
      await shop.admin.query(`
        CREATE TABLE marks (ran_at timestamptz, xid xid8);
        CREATE FUNCTION keep_mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO public.marks VALUES (NEW.ran_at, pg_current_xact_id()); RETURN NULL; END $$;
        -- A run is marked by the second of two upserts; the first one finds the row.
        CREATE TRIGGER keep AFTER UPDATE ON fenced_lock.last_run FOR EACH ROW
          WHEN (OLD.ran_at <> NEW.ran_at) EXECUTE FUNCTION keep_mark();
        ALTER TABLE "Ledger" ADD xid xid8 DEFAULT pg_current_xact_id()`);
      const proxy = await startFaultProxy({ host: postgres.host, port: postgres.port });
      shop.closeLater(() => proxy.close());
      const redis = inject('redis').url as string;
      const args = [proxy.url(app), app, redis, `job:${randomUUID()}`, String(INTERVAL), String(LEASE)];
      const start = () => startWorker(new URL('./once-per.worker.ts', import.meta.url), args);
      const workers = Array.from({ length: WORKERS }, start);
      let restarted = false;
      try {
        await Promise.all(workers.map((worker) => worker.next('told')));
        const end = performance.now() + SECONDS * 1_000;
        while (performance.now() < end) {
          const [fault, place] = [Math.random(), Math.floor(Math.random() * WORKERS)];
          const worker = workers[place] as (typeof workers)[number];
          if (!restarted && postgres.supervised && end - performance.now() < SECONDS * 500) {
            await postgres.restart();
            restarted = true;
          } else if (fault < 0.3) {
            await worker.kill();
            workers[place] = start();
          } else if (fault < 0.5) {
            worker.freeze();
            await sleep(2 * LEASE + Math.random() * INTERVAL);
            worker.thaw();
          } else if (fault < 0.75) {
            await Promise.race([fault < 0.6 ? proxy.cutAfterCommit() : proxy.cutBeforeCommit(), sleep(INTERVAL)]);
          } else if (fault < 0.85) proxy.reset();
          await sleep(Math.random() * INTERVAL);
        }
      } finally {
        await Promise.all(workers.map((worker) => worker.kill()));
      }
      // What was cut off may still be there for a moment.
      await shop.admin.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'shop_app'`);
      const { rows: runs } = await shop.admin.query<{ interval: number; rows: number }>(`
        SELECT floor(extract(epoch FROM m.ran_at) * 1000 / ${INTERVAL})::float8 AS interval,
          (SELECT count(*)::int FROM "Ledger" AS l WHERE l.xid = m.xid) AS rows
        FROM marks AS m ORDER BY m.ran_at`);
      const work = await shop.admin.query('SELECT FROM "Ledger"');
      expect(new Set(runs.map(({ interval }) => interval)).size).toBe(runs.length);
      expect(runs.filter(({ rows }) => rows !== 1)).toEqual([]);
      expect(work.rowCount).toBe(runs.length);
      expect(runs.length).toBeGreaterThan(SECONDS / 4);
    },
    (SECONDS + 90) * 1_000,
  );
});
