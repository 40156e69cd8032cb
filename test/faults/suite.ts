import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import type { Actor } from '../support/faults/actor.js';
import { check, type Violation } from '../support/faults/check.js';
import { type Fault, LONG } from '../support/faults/fault.js';
import { checkLedger } from '../support/faults/gather.js';
import { Round } from '../support/faults/round.js';
import { Stage, type StageOptions } from '../support/faults/servers-and-workers.js';
import { FAULTS, FAULTS_OF_NODES } from '../support/faults/table/index.js';
import { TOPOLOGIES, type TopologyName } from '../support/topologies.js';

/** Three in each of three workers. */
export const CALLERS = 9;

/** A fault, and the longest time to get on after it. */
const TEST_TIME = 40_000;

/** Of this run; `FENCED_LOCK_SEED` repeats its choices. Which of two processes is faster, no seed decides. */
export const seed = process.env['FENCED_LOCK_SEED'] ?? String(Date.now() % 2 ** 31);

/** A suite with servers of its own, that it may kill, and workers on them. */
export function describeOnStage(name: string, suite: (stage: () => Stage) => void, options: StageOptions = {}): void {
  const { topology } = options;
  const missing = topology === 'memory' ? undefined : topology?.unavailable();
  const { url, reason } = inject('redis');
  const external = ['DATABASE_URL', 'REDIS_URL'].filter((given) => (process.env[given] ?? '') !== '');
  describe(name, () => {
    if (url === undefined) test.skip(reason, () => {});
    else if (missing !== undefined) test.skip(missing, () => {});
    else if (external.length > 0) test.skip(`${external.join(' and ')} may not be killed`, () => {});
    else suite(useStage(options));
  });
}

/** The faults of a topology's nodes, each with one that strikes a worker and one that strikes Postgres. */
export function describeTopology(name: TopologyName): void {
  const ofNodes: readonly Fault[] = FAULTS_OF_NODES[name];
  const others = [FAULTS.workers, FAULTS.Postgres];
  const together = ofNodes.map((fault, index) => [fault, ...others.map((kind) => kind[index % kind.length] as Fault)]);
  describeFaults(`faults of ${name}, and others with them`, together, { topology: TOPOLOGIES[name] });
}

/** As many faults as there are actors, one for each. */
export type Together = readonly Fault[];

/** Side by side, since each of them leaves the others their work. */
export function byThrees(faults: readonly Fault[]): Together[] {
  return inGroups(faults, 3);
}

/** The same, without the last actor. */
export function byTwos(faults: readonly Fault[]): Together[] {
  return inGroups(faults, 2);
}

function inGroups(faults: readonly Fault[], size: number): Together[] {
  return faults.flatMap((_, index) => (index % size === 0 ? [faults.slice(index, index + size)] : []));
}

/** Each fault once, in one round, with everybody proven to get on in between; then what that round has left behind. */
export function describeFaults(name: string, faults: readonly Together[], options?: StageOptions): void {
  describeOnStage(
    name,
    (stage) => {
      let round: Round | undefined;
      let calms = 0;
      beforeAll(async () => {
        round = await Round.begin(stage(), { seed: `once-${seed}` });
      });

      test.for(faults.map((each) => [each.map((fault) => fault.name).join(' + '), each] as const))(
        '%s',
        { timeout: TEST_TIME },
        async ([, each], context) => {
          const missing = each.map((fault) => fault.unavailable?.()).find((reason) => reason !== undefined);
          if (missing !== undefined) context.skip(missing);
          const struck = await Promise.all(
            each.map((fault, index) => round?.strike(fault, stage().actors[index] as Actor, LONG)),
          );
          expect(struck).toEqual(each.map(() => true));
          expect(await round?.calm(), 'everybody gets on').toBe(true);
          calms++;
        },
      );

      test(`after all of them the history holds (seed ${seed})`, async () => {
        const history = await round?.end();
        if (history === undefined) throw new Error('there is no round');
        expect(check(history)).toEqual([]);
        // What the calms alone have brought.
        expect(history.entries.length).toBeGreaterThanOrEqual(calms * CALLERS);
      });
    },
    options,
  );
}

const CAUGHT_WITHIN = 60_000;

/** Resolves when the ledger of those who are still at work shows it. */
export function lostUpdate(stage: Stage, round: Round): Promise<Violation> {
  return eventually(
    'an update is lost',
    async () => (await checkLedger(stage, round.products)).find(({ kind }) => kind === 'lost-update'),
    { within: CAUGHT_WITHIN, every: 200 },
  );
}

function useStage(options: StageOptions): () => Stage {
  let stage: Stage | undefined;
  beforeAll(async () => {
    stage = await Stage.open(options);
  });
  afterAll(() => stage?.close());
  return () => {
    if (stage === undefined) throw new Error('the stage is not open yet');
    return stage;
  };
}
