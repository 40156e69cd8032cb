import { TOPOLOGIES, type TopologyName } from '../../test/support/topologies.js';
import { withLockAlone } from '../contestants/index.js';
import { CommandCounter } from '../measure/commands.js';
import { summary } from '../measure/statistics.js';
import type { Cell, Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import { withRemotes } from '../workers/remote.js';
import type { Span, TopologySite, TopologyVerbs } from '../workers/topology.worker.js';
import type { Run, Scenario } from './scenario.js';

/** What the package sends; whatever else a node is sent comes from other nodes, or keeps a client up to date. */
const SENT = ['evalsha', 'eval', 'subscribe', 'unsubscribe', 'ssubscribe', 'sunsubscribe'];

export const topologies: Scenario = {
  name: 'topologies',
  about: '$withLock on each way in which Redis is run, on the same Postgres',
  async run(stage, run): Promise<Table[]> {
    const rows = [];
    for (const name of Object.keys(TOPOLOGIES) as TopologyName[]) {
      run.step(name);
      const unavailable = TOPOLOGIES[name].unavailable();
      rows.push({ topology: name, ...(unavailable === undefined ? await measure(stage, run, name) : { unavailable }) });
    }
    const chart = { kind: 'bar', label: 'topology', value: 'hand-over, ms' } as const;
    return [{ title: 'Each topology', note: NOTE, rows, chart }];
  },
};

const NOTE =
  'Alone: one caller after the other in one process, nobody else wants the key. Bare: the same transaction without a ' +
  'lock. Hand-over: from the end of the work in one process to its beginning in the other, which was waiting: COMMIT, ' +
  'release, wake-up, BEGIN and admission are in it. Commands: as the clients send them, on all nodes together. ' +
  'All nodes and both processes share this machine.';

async function measure(stage: Stage, run: Run, name: TopologyName): Promise<Record<string, Cell>> {
  const topology = TOPOLOGIES[name];
  const group = await topology.start();
  const counters: CommandCounter[] = [];
  try {
    for (const { url } of group.nodes) counters.push(await CommandCounter.start(url));
    const [id = 0] = (await stage.rows(withLockAlone, 1)).ids;
    const wake = 'wake' in topology ? topology.wake : 'pubsub';
    const site: TopologySite = { database: stage.site.plain, redis: group.site, wake, id };
    return await withRemotes<TopologyVerbs, Record<string, Cell>>(
      './topology.worker.ts',
      site,
      2,
      async ([one, other]) => {
        const count = run.size(100, 10);
        for (const remote of [one, other]) await remote?.ask('alone', run.warmUp);
        await one?.ask('bare', run.warmUp);
        const bare = (await one?.ask('bare', count)) ?? Number.NaN;
        for (const counter of counters) await counter.reset();
        const alone = (await one?.ask('alone', count)) ?? Number.NaN;
        const commandsAlone = (await sent(counters)) / count;
        for (const counter of counters) await counter.reset();
        const turns = run.size(100, 10);
        const spans = await Promise.all([one, other].map(async (remote) => (await remote?.ask('turns', turns)) ?? []));
        const commandsTaken = (await sent(counters)) / (2 * turns);
        const handOver = summary(handOvers(spans));
        return {
          'alone, ms': alone,
          'bare, ms': bare,
          'commands alone': commandsAlone,
          'hand-over, ms': handOver.median,
          'p99 ms': handOver.p99,
          'commands a turn': commandsTaken,
          servers: group.about,
        };
      },
    );
  } finally {
    for (const counter of counters) counter.stop();
    await group.stop();
  }
}

async function sent(counters: readonly CommandCounter[]): Promise<number> {
  const counts = await Promise.all(counters.map((counter) => counter.counts()));
  return counts.reduce((sum, each) => sum + SENT.reduce((own, verb) => own + (each[verb] ?? 0), 0), 0);
}

/** From one process to the other; a process that follows itself did not wait. */
function handOvers(spans: readonly Span[][]): number[] {
  const inOrder = spans
    .flatMap((own, process) => own.map((span) => ({ ...span, process })))
    .sort((a, b) => a.began - b.began);
  return inOrder.flatMap((span, index) => {
    const before = inOrder[index - 1];
    return before === undefined || before.process === span.process ? [] : [span.began - before.ended];
  });
}
