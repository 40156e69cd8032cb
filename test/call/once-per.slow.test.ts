import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { withDatabase, withUser } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { startWorker, type Worker } from '../support/worker.js';

/** How long the workers run; the full length is 120. */
const SECONDS = Number(process.env['ONCE_PER_SECONDS'] ?? 30);
const INTERVAL = 1_000;
/** So that the next one can repeat what a killed one has begun, in the same interval. */
const LEASE = 300;
const WORKERS = 4;

interface Run {
  /** The number of the interval, by the mark. */
  readonly interval: number;
  /** Rows that its work has written. */
  readonly rows: number;
}

describeWithShop('$oncePer in several processes, some of which are killed', () => {
  const shop = new Shop();

  test(
    `each interval has one committed run at most, with all of its work (${SECONDS} s)`,
    async () => {
      const name = `once_${randomUUID().replaceAll('-', '')}`;
      const url = withDatabase(inject('postgres').admin, name);
      const app = withUser(url, 'shop_app', 'shop_app');
      const own = new Shop(() => ({ postgres: app, admin: url, redis: inject('redis').url as string }));
      await shop.admin.query(`CREATE DATABASE ${name}`);
      shop.closeLater(async () => {
        await own.close();
        await shop.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      });
      await setUpShop({ url, urlFor: () => app });
      // Each mark is kept, with the transaction that wrote it.
      await own.admin.query(`
        CREATE TABLE marks (ran_at timestamptz, xid xid8);
        CREATE FUNCTION keep_mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO public.marks VALUES (NEW.ran_at, pg_current_xact_id()); RETURN NULL; END $$;
        CREATE TRIGGER keep AFTER INSERT OR UPDATE ON fenced_lock.last_run FOR EACH ROW EXECUTE FUNCTION keep_mark();
        ALTER TABLE "Ledger" ADD xid xid8 DEFAULT pg_current_xact_id()`);
      const { hostname: host, port } = new URL(url);
      const proxy = await startFaultProxy({ host, port: Number(port) });
      own.closeLater(() => proxy.close());
      const key = `job:${randomUUID()}`;
      const args = [proxy.url(app), app, inject('redis').url as string, key, String(INTERVAL), String(LEASE), 'loop'];
      const start = () => startWorker(new URL('./once-per.worker.ts', import.meta.url), args);
      const workers: Worker[] = Array.from({ length: WORKERS }, start);
      let [killedInside, lost] = [0, 0];

      /** Kills one of them as soon as it is at work, and starts another one. */
      async function kill(): Promise<void> {
        const place = Math.floor(Math.random() * WORKERS);
        const worker = workers[place] as Worker;
        const inside = await worker.next('inside', { within: 2 * INTERVAL }).then(
          () => true,
          () => false,
        );
        // Between its beginning and its end, or a moment behind that.
        await sleep(Math.random() * 100);
        await worker.kill();
        if (inside) killedInside++;
        workers[place] = start();
      }

      try {
        await Promise.all(workers.map((worker) => worker.next('told')));
        const end = performance.now() + SECONDS * 1_000;
        while (performance.now() < end) {
          const fault = Math.random();
          if (fault < 0.4) await kill();
          else if (fault < 0.7) {
            lost++;
            await Promise.race([
              Math.random() < 0.5 ? proxy.cutAfterCommit() : proxy.cutBeforeCommit(),
              sleep(2 * INTERVAL),
            ]);
          } else if (fault < 0.8) proxy.reset();
          await sleep(Math.random() * INTERVAL);
        }
      } finally {
        await Promise.all(workers.map((worker) => worker.kill()));
      }
      // What was cut off may still be there for a moment.
      await own.admin.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'shop_app'`);
      const { rows: runs } = await own.admin.query<Run>(`
        SELECT floor(extract(epoch FROM m.ran_at) * 1000 / ${INTERVAL})::float8 AS interval,
          (SELECT count(*)::int FROM "Ledger" AS l WHERE l.xid = m.xid) AS rows
        FROM marks AS m ORDER BY m.ran_at`);
      const { rows: [work] = [] } = await own.admin.query<{ rows: number }>(
        'SELECT count(*)::int AS rows FROM "Ledger"',
      );
      console.log(`${runs.length} runs in ${SECONDS} s, ${killedInside} killed inside, ${lost} commits cut off`);
      expect(new Set(runs.map(({ interval }) => interval)).size).toBe(runs.length);
      expect(runs.filter(({ rows }) => rows !== 1)).toEqual([]);
      expect(work?.rows).toBe(runs.length);
      // Killed ones are repeated in the same interval, mostly.
      expect(runs.length).toBeGreaterThan(SECONDS / 2);
      expect(killedInside).toBeGreaterThan(0);
    },
    (SECONDS + 60) * 1_000,
  );
});
