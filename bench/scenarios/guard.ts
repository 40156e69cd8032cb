import Table from 'cli-table3';
import pg from 'pg';
import { interleave } from '../interleave.js';
import type { BenchShop } from '../shop.js';

const ROWS = 10_000;

/** What each table of the scenario has on it; the first has nothing. */
const GUARDS: Readonly<Record<string, readonly [column: string, policy: string] | undefined>> = {
  'no guard': undefined,
  allow: ['fence', 'allow'],
  require: ['fence', 'require'],
  prove: ['fence', 'prove'],
  'allow, column of another name': ['row_fence', 'allow'],
};

const ADMIT = `SELECT fenced_lock.admit('{"keys": ["bench"], "holders": ["00000000-0000-4000-8000-000000000000"],
  "attempt": "00000000-0000-4000-8000-000000000000", "leaseTime": 30000, "workTime": 30000, "waitTime": 1000}')`;

/** What the guard costs for each row that one UPDATE writes. */
export async function guard({ admin }: BenchShop): Promise<void> {
  const client = new pg.Client({ connectionString: admin });
  await client.connect();
  try {
    const contestants: Record<string, () => Promise<unknown>> = {};
    for (const [index, [name, installed]] of Object.entries(GUARDS).entries()) {
      const column = installed?.[0] ?? 'fence';
      const table = `bench_guard_${index}`;
      await client.query(`CREATE TABLE ${table} (id int PRIMARY KEY, value int NOT NULL, ${column} bigint NOT NULL DEFAULT 0)
        WITH (fillfactor = 50, autovacuum_enabled = false);
        INSERT INTO ${table} SELECT i, 0 FROM generate_series(1, ${ROWS}) AS i`);
      if (installed) {
        await client.query(`CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON ${table}
          FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('${installed[0]}', '${installed[1]}')`);
      }
      contestants[name] = async () => {
        // Rolled back, so that every round meets the same table.
        await client.query(`BEGIN; ${ADMIT}; UPDATE ${table} SET value = value + 1; ROLLBACK`);
        await client.query(`VACUUM ${table}`);
      };
    }
    const timings = await interleave(contestants, { rounds: 30, warmUp: 3 });
    const bare = timings['no guard']?.median ?? 0;
    const head = [`UPDATE of ${ROWS.toLocaleString('en')} rows`, 'median ms', 'µs more for each row'];
    const table = new Table({ head, style: { head: [] } });
    for (const [name, { median }] of Object.entries(timings)) {
      table.push([name, median.toFixed(1), (((median - bare) * 1_000) / ROWS).toFixed(2)]);
    }
    console.log(table.toString());
  } finally {
    await client.end();
  }
}
