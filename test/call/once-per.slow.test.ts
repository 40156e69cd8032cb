import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { Commits, Machines, unexplained } from './once-per.machines.js';

/** How long the workers run; the full length is 120. */
const SECONDS = Number(process.env['ONCE_PER_SECONDS'] ?? 30);
const INTERVAL = 1_000;
/** So that the next one can repeat what a killed one has begun, in the same interval. */
const LEASE = 300;
const WORKERS = 5;
/** Calls that end in an interval if the machine has time for these processes; there are about 100. */
const ENOUGH_CALLS = 40;
/** So many runs whose work threw leave no time for another one in their interval, on a busy machine. */
const ENOUGH_THROWN = 2;
/** A COMMIT that takes longer than this leaves no time for a run in its interval; milliseconds. */
const SLOW_COMMIT = 200;

interface Run {
  /** The number of the interval, by the mark. */
  readonly interval: number;
  /** Rows that its work has written. */
  readonly rows: number;
}

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
    `each interval has one committed run with all of its work, or none if a crash explains it (${SECONDS} s)`,
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
      const args = [proxy.url(app), app, redis, `job:${randomUUID()}`, String(INTERVAL), String(LEASE), 'loop'];
      const machines = new Machines(WORKERS, args);
      const { crashes } = machines;
      const commits = new Commits(() => shop.admin.query('INSERT INTO marks VALUES (NULL, NULL)'));
      let begun = 0;
      try {
        await machines.ready();
        begun = Date.now();
        const end = performance.now() + SECONDS * 1_000;
        // In the middle of each part of 40 s, or once in a short run.
        const parts = Math.max(1, Math.round(SECONDS / 40));
        const restarts = Array.from({ length: parts }, (_, part) => end - (SECONDS * 1_000 * (part + 0.5)) / parts);
        while (performance.now() < end) {
          const fault = Math.random();
          if (performance.now() >= (restarts.at(-1) ?? end)) {
            restarts.pop();
            if (postgres.supervised) await machines.during('restart', () => postgres.restart());
          } else if (fault < 0.3) await machines.kill(2 * INTERVAL);
          else if (fault < 0.5) await machines.freeze(2 * INTERVAL, 2 * LEASE + Math.random() * INTERVAL);
          else if (fault < 0.75) {
            const cut = Math.random() < 0.5 ? proxy.cutAfterCommit() : proxy.cutBeforeCommit();
            // It may come later than that, and is a crash then, too.
            const noted = cut.then(() => machines.during('cut', () => {}));
            await Promise.race([noted, sleep(2 * INTERVAL)]);
          } else if (fault < 0.85) await machines.during('reset', () => proxy.reset());
          await sleep(Math.random() * INTERVAL);
        }
      } finally {
        await Promise.all([machines.end(), commits.end()]);
      }
      const ended = Date.now();
      // What was cut off may still be there for a moment.
      await shop.admin.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'shop_app'`);
      const { rows: runs } = await shop.admin.query<Run>(`
        SELECT floor(extract(epoch FROM m.ran_at) * 1000 / ${INTERVAL})::float8 AS interval,
          (SELECT count(*)::int FROM "Ledger" AS l WHERE l.xid = m.xid) AS rows
        FROM marks AS m WHERE m.xid IS NOT NULL ORDER BY m.ran_at`);
      const { rows: [work] = [] } = await shop.admin.query<{ rows: number }>(
        'SELECT count(*)::int AS rows FROM "Ledger"',
      );
      const ran = new Set(runs.map(({ interval }) => interval));
      // The intervals that lie in the test as a whole.
      const [first, last] = [Math.ceil(begun / INTERVAL), Math.floor(ended / INTERVAL) - 1];
      const skipped = Array.from({ length: last - first + 1 }, (_, index) => first + index).filter((n) => !ran.has(n));
      const without = unexplained(skipped, INTERVAL, crashes, isAway);
      const wrong = without.filter((n) => {
        const [from, until] = [n * INTERVAL, (n + 1) * INTERVAL];
        const isBusy = machines.answers(from, until) < ENOUGH_CALLS || commits.longest(from, until) > SLOW_COMMIT;
        // Without a crash, only a machine without time to renew it loses a lease.
        const lost = machines.ended(from, until, 'LOCK_LOST');
        return !isBusy && lost === 0 && machines.ended(from, until, 'no run') < ENOUGH_THROWN;
      });
      const count = (kind: string) => crashes.filter((crash) => crash.kind === kind).length;
      const calls = machines.answers(begun, ended) / (last - first + 1);
      const kinds = ['kill', 'freeze', 'cut', 'reset', 'restart'].map((kind) => `${count(kind)} ${kind}`);
      console.log(
        `${last - first + 1} intervals, ${runs.length} runs, ${skipped.length} skipped; ${kinds.join(', ')}; ${calls.toFixed(0)} calls an interval; ` +
          `skipped without a crash: ${without.length}, ${without.length - wrong.length} of them while the machine was busy or the work threw`,
      );
      expect(ran.size).toBe(runs.length);
      expect(runs.filter(({ rows }) => rows !== 1)).toEqual([]);
      expect(work?.rows).toBe(runs.length);
      // What tells a busy machine from a fault of the lock.
      const told = wrong.map((n) => {
        const [from, until] = [n * INTERVAL, (n + 1) * INTERVAL];
        return {
          begin: from,
          answers: machines.answers(from, until),
          runs: machines.told(from, until),
          pause: machines.longestPause(from, until),
          commit: commits.longest(from, until),
          crashes: crashes.filter((crash) => crash.until > from - 2 * INTERVAL && crash.from < until + INTERVAL),
        };
      });
      expect(told).toEqual([]);
      expect(count('kill')).toBeGreaterThan(0);
      expect(count('freeze')).toBeGreaterThan(0);
    },
    (SECONDS + 90) * 1_000,
  );
});

/** Without Postgres nobody can run. */
function isAway({ kind }: { readonly kind: string }): boolean {
  return kind === 'restart';
}
