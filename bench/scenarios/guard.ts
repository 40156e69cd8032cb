import { admitByHand } from '../../test/support/admit-by-hand.js';
import { interleave } from '../measure/interleave.js';
import { spread, summary } from '../measure/statistics.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

const ROWS = 10_000;

/** What each table of the scenario has on it; the first has nothing. */
const GUARDS: Readonly<Record<string, readonly [column: string, policy: string] | undefined>> = {
  'no guard': undefined,
  allow: ['fence', 'allow'],
  require: ['fence', 'require'],
  prove: ['fence', 'prove'],
  'allow, column of another name': ['row_fence', 'allow'],
};

const ADMIT = admitByHand({ keys: ['bench'] });

export const guard: Scenario = {
  name: 'guard',
  about: 'what the guard of a table costs for each row that one UPDATE writes',
  run: async (stage, run) => [await measure(stage, run)],
};

async function measure(stage: Stage, run: Run): Promise<Table> {
  const client = await stage.admin('plain').connect();
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
    const onRound = (round: number) => run.step(`round ${round}`);
    const times = await interleave(contestants, {
      count: run.size(30, 2),
      warmUp: run.size(3, 0),
      budget: 12_000,
      onRound,
    });
    const bare = summary(times['no guard'] ?? []).median;
    const rows = Object.entries(times).map(([guard, own]) => {
      const { median } = summary(own);
      const more = ((median - bare) * 1_000) / ROWS;
      return { guard, 'median ms': median, 'middle half': spread(own, 1), 'µs more for each row': more };
    });
    return { title: `UPDATE of ${ROWS.toLocaleString('en')} rows`, rows };
  } finally {
    client.release();
  }
}
