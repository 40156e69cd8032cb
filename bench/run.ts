import { inspect } from 'node:util';
import type { Contestant } from './contestants/contestant.js';
import { queuedForUpdate, withLockAlone } from './contestants/index.js';
import { simpleRedisMutex } from './contestants/simple-redis-mutex.js';
import { inText } from './report/console.js';
import { machine, versions } from './report/machine.js';
import { Progress } from './report/progress.js';
import type { Report, ScenarioResult } from './report/result.js';
import type { Run, Scenario } from './scenarios/scenario.js';
import { Stage } from './servers.js';

export interface BenchOptions {
  readonly scenarios: readonly Scenario[];
  readonly contestants: readonly Contestant[];
  readonly quick: boolean;
  readonly seed: number;
  /** Sales of each contestant before it is measured. */
  readonly warmUp: number;
}

/** One of each way to wait, and none that is slow. */
const QUICK = [queuedForUpdate, simpleRedisMutex, withLockAlone].map(({ name }) => name);

/** The scenarios one after the other, each on fresh servers. One that fails does not keep the others from running. */
export async function bench(options: BenchOptions, say: (text: string) => void): Promise<Report> {
  const startedAt = new Date().toISOString();
  const before = machine();
  const progress = new Progress(options.scenarios.length);
  const scenarios: ScenarioResult[] = [];
  let servers = '';
  try {
    for (const scenario of options.scenarios) {
      progress.begins(scenario.name);
      const result = await play(scenario, options, progress, (names) => {
        servers = names;
      });
      scenarios.push(result);
      progress.clear();
      say(inText(result));
    }
  } finally {
    progress.stop();
  }
  const { seed, quick, warmUp } = options;
  return { startedAt, seed, quick, warmUp, machine: { ...before, servers }, versions: versions(), scenarios };
}

async function play(
  scenario: Scenario,
  { contestants, quick, seed, warmUp }: BenchOptions,
  progress: Progress,
  onServers: (names: string) => void,
): Promise<ScenarioResult> {
  const { name, about } = scenario;
  const run: Run = {
    contestants,
    few: quick ? contestants.filter(({ name }) => QUICK.includes(name)) : contestants,
    seed,
    warmUp,
    size: (full, small) => (quick ? small : full),
    step: (what) => progress.step(what),
  };
  const from = performance.now();
  const seconds = () => (performance.now() - from) / 1_000;
  let stage: Stage | undefined;
  try {
    stage = await Stage.start();
    onServers(stage.servers);
    const tables = await scenario.run(stage, run);
    return { scenario: name, about, seconds: seconds(), tables };
  } catch (error) {
    return { scenario: name, about, seconds: seconds(), tables: [], error: inspect(error) };
  } finally {
    await stage?.stop();
  }
}
