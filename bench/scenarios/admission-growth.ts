import { run as runCli } from '../../src/cli/program.js';
import { withLockAlone } from '../contestants/index.js';
import { crowd } from '../measure/crowd.js';
import { summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Stage } from '../stage.js';
import type { Run, Scenario } from './scenario.js';

const BATCH = 1_000;

export const admissionGrowth: Scenario = {
  name: 'admission-growth',
  about: 'how the admission table grows with keys and with turns, and what gc takes',
  async run(stage, run) {
    return [await byKeys(stage, run), await byTurns(stage, run)];
  },
};

async function byKeys(stage: Stage, run: Run) {
  const admin = stage.admin('plain');
  const keys = run.size(100_000, 5_000);
  const rows = [];
  run.step(`${keys} keys`);
  const empty = await size(stage);
  const from = performance.now();
  for (let first = 0; first < keys; first += BATCH) {
    await admin.query(
      `SELECT fenced_lock.admit(jsonb_build_object('keys', jsonb_build_array('growth:' || i), 'holders', jsonb_build_array(gen_random_uuid()),
         'attempt', gen_random_uuid(), 'leaseTime', 30000, 'workTime', 30000, 'waitTime', 10000))
       FROM generate_series($1::integer, $2::integer) AS i`,
      [first, first + BATCH - 1],
    );
  }
  const full = await size(stage);
  rows.push({ step: `${keys.toLocaleString('en')} new keys`, ms: performance.now() - from, rows: keys, ...mib(full) });

  // gc deletes what is idle for a day at least: half of them are made so old.
  await admin.query(
    `UPDATE fenced_lock.admission SET admitted_at = now() - interval '2 days' WHERE hashtext(key) % 2 = 0`,
  );
  const tally = await Tally.of(stage, withLockAlone, 100);
  const seller = await stage.house.seller(withLockAlone);
  const sales = (count: number) => Array.from({ length: count }, (_, place) => tally.saleOf(place % 100));
  const before = await crowd(seller, sales(run.size(400, 20)), 2);
  run.step('gc');
  const gcFrom = performance.now();
  let gcMs = Number.NaN;
  const gc = collect(stage).then((deleted) => {
    gcMs = performance.now() - gcFrom;
    return deleted;
  });
  const during: number[] = [];
  do during.push(...(await crowd(seller, sales(20), 2)).times);
  while (Number.isNaN(gcMs));
  const deleted = await gc;
  rows.push({ step: 'gc of the older half', ms: gcMs, rows: deleted, ...mib(await size(stage)) });
  await admin.query('VACUUM fenced_lock.admission');
  rows.push({ step: 'VACUUM', ms: Number.NaN, rows: keys - deleted, ...mib(await size(stage)) });
  const [quiet, beside] = [summary(before.times), summary(during)];
  const note =
    `${((full.table + full.index - empty.table - empty.index) / keys).toFixed(0)} bytes a key. ` +
    `$withLock before gc: median ${quiet.median.toFixed(2)} ms, p99 ${quiet.p99.toFixed(2)}; while it runs: ` +
    `${beside.median.toFixed(2)} ms, ${beside.p99.toFixed(2)} (${during.length} sales).`;
  return { title: 'Keys', note, rows };
}

/** Many turns of one key: does the row, and with it each turn, grow? */
async function byTurns(stage: Stage, run: Run) {
  const tally = await Tally.of(stage, withLockAlone);
  const seller = await stage.house.seller(withLockAlone);
  const rows = [];
  let turns = 0;
  for (let part = 0; part < 5; part++) {
    run.step(`turns of one key, part ${part + 1} of 5`);
    const met = await crowd(
      seller,
      Array.from({ length: run.size(600, 20) }, () => tally.sale),
      1,
    );
    tally.add(met);
    turns += met.ok;
    rows.push({
      turns,
      'median ms': summary(met.times).median,
      'p99 ms': summary(met.times).p99,
      ...mib(await size(stage)),
    });
  }
  const chart = { kind: 'line', label: 'turns', value: 'median ms' } as const;
  return { title: 'Turns of one key, one after the other', rows, chart };
}

async function collect(stage: Stage): Promise<number> {
  let out = '';
  const stdout = { write: (text: string) => (out += text) };
  const world = { cwd: process.cwd(), env: {}, now: () => new Date(), stdout, stderr: stdout };
  const code = await runCli(['gc', '--older-than', '1d', '--database-url', stage.adminUrl, '--json'], world);
  if (code !== 0) throw new Error(`gc: ${out}`);
  return (JSON.parse(out) as { rows: number }).rows;
}

async function size(stage: Stage): Promise<{ table: number; index: number }> {
  const { rows } = await stage
    .admin('plain')
    .query<{ table: string; index: string }>(
      `SELECT pg_table_size('fenced_lock.admission') AS table, pg_indexes_size('fenced_lock.admission') AS index`,
    );
  return { table: Number(rows[0]?.table), index: Number(rows[0]?.index) };
}

function mib({ table, index }: { table: number; index: number }) {
  return { 'table MiB': table / 2 ** 20, 'index MiB': index / 2 ** 20 };
}
