import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { withDatabase, withUser } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { startWorker, type Worker } from '../support/worker.js';

/** How long the workers run; the full length is 120. */
const SECONDS = Number(process.env['AFTER_COMMIT_SECONDS'] ?? 20);
const WORKERS = 3;

/** What became of one operation. */
interface Row {
  readonly id: string;
  readonly committed: boolean;
  /** How often its hooks have run. */
  readonly commits: number;
  readonly rollbacks: number;
  readonly unknowns: number;
}

describeWithShop('hooks among faults', () => {
  const shop = new Shop();

  test(
    `afterCommit runs for no work that was rolled back, and once for all that was told as committed (${SECONDS} s)`,
    async () => {
      const name = `outbox_${randomUUID().replaceAll('-', '')}`;
      const url = withDatabase(inject('postgres').admin, name);
      const app = withUser(url, 'shop_app', 'shop_app');
      const own = new Shop(() => ({ postgres: app, admin: url, redis: inject('redis').url as string }));
      await shop.admin.query(`CREATE DATABASE ${name}`);
      shop.closeLater(async () => {
        await own.close();
        await shop.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      });
      await setUpShop({ url, urlFor: () => app });
      await own.admin.query(`
        CREATE TABLE work (id uuid, refuse boolean);
        CREATE TABLE outbox (id uuid, hook text);
        GRANT SELECT, INSERT ON work, outbox TO shop_app;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF NEW.refuse THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON work DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION refuse()`);
      const { hostname: host, port } = new URL(url);
      const proxy = await startFaultProxy({ host, port: Number(port) });
      own.closeLater(() => proxy.close());
      const keys = Array.from({ length: 4 }, () => `work:${randomUUID()}`);
      const args = [proxy.url(app), app, inject('redis').url as string, ...keys];
      const start = () => startWorker(new URL('./outbox.worker.ts', import.meta.url), args);
      const workers = Array.from({ length: WORKERS }, start);
      const dead: Worker[] = [];
      let cut = 0;
      const end = performance.now() + SECONDS * 1_000;
      try {
        await Promise.all(workers.map((worker) => worker.next('told')));
        while (performance.now() < end) {
          const fault = Math.random();
          const within = (done: Promise<void>) => Promise.race([done.then(() => cut++), sleep(1_000)]);
          if (fault < 0.35) await within(proxy.cutAfterCommit());
          else if (fault < 0.7) await within(proxy.cutBeforeCommit());
          else if (fault < 0.85) proxy.reset();
          else {
            const place = Math.floor(Math.random() * WORKERS);
            const worker = workers[place] as Worker;
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
      const { rows } = await own.admin.query<Row>(`
        SELECT ids.id, EXISTS (SELECT FROM work AS w WHERE w.id = ids.id) AS committed,
          (SELECT count(*)::int FROM outbox AS o WHERE o.id = ids.id AND hook = 'afterCommit') AS commits,
          (SELECT count(*)::int FROM outbox AS o WHERE o.id = ids.id AND hook = 'afterRollback') AS rollbacks,
          (SELECT count(*)::int FROM outbox AS o WHERE o.id = ids.id AND hook = 'onUnknown') AS unknowns
        FROM (SELECT id FROM work UNION SELECT id FROM outbox) AS ids`);
      const known = new Map(rows.map((row) => [row.id, row]));
      const outcomes = (what: string) =>
        [...told].filter(([, outcome]) => outcome === what).map(([id]) => known.get(id));
      console.log(
        `${rows.filter(({ committed }) => committed).length} committed, ${outcomes('error').length} told as failed, ` +
          `${outcomes('unknown').length} unknown, ${cut} commits cut off, ${dead.length} processes killed`,
      );
      expect(rows.filter((row) => row.commits > 0 && !row.committed)).toEqual([]);
      expect(rows.filter((row) => row.rollbacks > 0 && row.committed && row.commits === 0)).toEqual([]);
      expect(rows.filter((row) => row.commits + row.unknowns > 1)).toEqual([]);
      expect(outcomes('ok').filter((row) => row?.commits !== 1 || !row.committed)).toEqual([]);
      expect(outcomes('error').filter((row) => row !== undefined && (row.commits > 0 || row.committed))).toEqual([]);
      expect(outcomes('ok').length).toBeGreaterThan(SECONDS);
      expect(outcomes('error').filter((row) => row !== undefined && row.rollbacks > 0).length).toBeGreaterThan(0);
      expect(cut).toBeGreaterThan(0);
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
