import type { Contestant } from '../contestants/contestant.js';
import { waiting } from '../measure/waiting.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

export const idleWaiters: Scenario = {
  name: 'idle-waiters',
  about: 'what 500 and 10,000 callers of one process cost while they wait for a key that another process holds',
  async run(stage, run) {
    // Where callers wait in Postgres, all but the pool's ten wait in the pool, and are refused there after two seconds.
    const some = run.few.filter(({ waits, shop }) => waits !== 'nowhere' && shop === 'plain');
    const many = some.filter(({ waits }) => waits === 'redis' || waits === run.size('process', 'redis'));
    return [await measure(stage, run, some, run.size(500, 50)), await measure(stage, run, many, run.size(10_000, 500))];
  },
};

async function measure(stage: Stage, run: Run, contestants: readonly Contestant[], callers: number): Promise<Table> {
  const rows = [];
  for (const contestant of contestants) {
    run.step(`${callers} callers, ${contestant.name}`);
    const waited = await waiting(stage, contestant, callers, run.size(2_000, 300));
    rows.push({
      contestant: contestant.name,
      'Redis commands/s': waited?.commandsPerSecond ?? Number.NaN,
      'CPU, % of a core': (waited?.cpu ?? Number.NaN) * 100,
      'Redis CPU, %': (waited?.redisCpu ?? Number.NaN) * 100,
      'heap KiB per caller': (waited?.heapPerCaller ?? Number.NaN) / 1_024,
      'busy connections': waited?.connections ?? Number.NaN,
      'gave up': waited?.gaveUp ?? Number.NaN,
      remark: waited === undefined ? 'too busy to answer' : '',
    });
  }
  return {
    title: `${callers.toLocaleString('en')} callers wait`,
    note: 'Over two seconds, one second after they came. Busy connections: sessions in Postgres that are not idle, the holder aside.',
    rows,
    chart: { kind: 'bar', label: 'contestant', value: 'Redis commands/s' },
  };
}
