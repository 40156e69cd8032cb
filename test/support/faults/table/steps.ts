import { setTimeout as sleep } from 'node:timers/promises';
import * as scripts from '../../../../src/redis/scripts.generated.js';
import type { Direction, FaultProxy, Seen } from '../../fault-proxy.js';
import type { Actor } from '../actor.js';
import type { Fault, Place } from '../fault.js';
import type { Lines } from '../lines.js';
import type { Stage } from '../servers-and-workers.js';

/** How long a step may take to come: some wait for a renewal. */
const COMES_WITHIN = 15_000;

interface Step {
  readonly name: string;
  readonly line: 'postgres' | 'commands';
  /** Default: to the server. */
  readonly direction?: Direction;
  /** What the workers have to do for it to come: a long turn, or turns that follow each other on one connection. */
  readonly needs?: 'dawdle' | 'crowd';
  matches(data: Buffer, seen: Seen): boolean;
}

const containing = (text: string) => (data: Buffer) => data.includes(text);
/** ReadyForQuery. It does not come with the answer to COMMIT if a BEGIN was sent in the same flight. */
const READY = Buffer.from('Z\0\0\0\u0005', 'latin1');
/** Its text, or the name that it is prepared under. */
const ADMISSION = /fenced_lock(?:\.admit| [0-9a-f]{16})/;

/** The steps of one call, as they come over its lines: each is held back until it is dealt with. */
const STEPS: readonly Step[] = [
  { name: 'acquire', line: 'commands', matches: containing(scripts.acquire.sha1) },
  { name: 'extend', line: 'commands', needs: 'dawdle', matches: containing(scripts.extend.sha1) },
  { name: 'release', line: 'commands', matches: containing(scripts.release.sha1) },
  { name: 'BEGIN', line: 'postgres', matches: containing('BEGIN') },
  { name: 'the admission', line: 'postgres', matches: (data) => ADMISSION.test(data.toString('latin1')) },
  { name: 'the read', line: 'postgres', matches: containing('."Stock"."quantity"') },
  { name: 'the write', line: 'postgres', matches: containing('UPDATE "public"."Stock"') },
  { name: 'the last write', line: 'postgres', matches: containing('INSERT INTO "public"."Ledger"') },
  { name: 'COMMIT', line: 'postgres', matches: (_, { commit }) => commit },
  {
    name: 'COMMIT with the next BEGIN',
    line: 'postgres',
    needs: 'crowd',
    matches: (data, { commit }) => commit && data.includes('BEGIN'),
  },
  {
    name: 'the answer to COMMIT with a BEGIN behind it',
    line: 'postgres',
    direction: 'toClient',
    needs: 'crowd',
    matches: (data, { commitReply }) => commitReply && !data.includes(READY),
  },
  {
    name: 'the answer to BEGIN and the admission',
    line: 'postgres',
    direction: 'toClient',
    needs: 'crowd',
    matches: (data, { commitReply }) => data.includes('BEGIN\0') && !commitReply,
  },
];

/** What is done while the step is on its way; afterwards it arrives, if there is still somebody to hear it. */
interface Action {
  readonly name: string;
  /** Its name at a step that comes from the server. */
  readonly nameAtAnswer?: string;
  readonly place: (step: Step) => Place | undefined;
  act(stage: Stage, actor: Actor, line: FaultProxy): Promise<unknown>;
  after?(actor: Actor, ms: number): Promise<unknown>;
}

const ACTIONS: readonly Action[] = [
  {
    name: 'frozen past its lease, having sent',
    nameAtAnswer: 'frozen past its lease before',
    place: () => 'worker',
    act: async (_, { worker }) => worker.freeze(),
    after: async ({ worker }, ms) => {
      await sleep(ms);
      worker.thaw();
    },
  },
  {
    name: 'killed, having sent',
    nameAtAnswer: 'killed before',
    place: () => 'worker',
    act: (_, actor) => actor.die(),
    after: (actor) => actor.enter(),
  },
  {
    name: 'connection reset before',
    place: ({ line }) => (line === 'postgres' ? 'postgres line' : 'redis line'),
    act: async (_, __, line) => line.reset(),
  },
  {
    name: 'backend terminated before',
    place: ({ line }) => (line === 'postgres' ? 'postgres line' : undefined),
    act: ({ database }, actor) =>
      database
        .query('SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = $1', [
          actor.process,
        ])
        .catch(() => {}),
  },
];

/** Every action at every step. */
export const STEP_FAULTS: readonly Fault[] = faultsAt(STEPS.filter(({ needs }) => needs !== 'crowd'));

/** Every action at every step between two turns on one connection. A worker with strict fairness has no such turns. */
export const CHAIN_FAULTS: readonly Fault[] = faultsAt(STEPS.filter(({ needs }) => needs === 'crowd'));

/** Those that need no line to the one Redis. */
export const POSTGRES_STEP_FAULTS: readonly Fault[] = faultsAt(STEPS.filter(({ line }) => line === 'postgres'));

function faultsAt(steps: readonly Step[]): Fault[] {
  return steps.flatMap((step) =>
    ACTIONS.flatMap((action): Fault[] => {
      const place = action.place(step);
      const verb = step.direction === 'toClient' ? action.nameAtAnswer : undefined;
      const name = `${verb ?? action.name} ${step.name}`;
      return place === undefined ? [] : [{ name, place, strike: strikeAt(step, action) }];
    }),
  );
}

function strikeAt(step: Step, { act, after }: Action): Fault['strike'] {
  return async (stage, actor, ms) => {
    const line = actor.lines[step.line];
    if (step.needs) actor.tell({ type: step.needs });
    if (!(await holdAt(step, actor.lines))) return false;
    await act(stage, actor, line);
    line.resume();
    await after?.(actor, ms);
    return true;
  };
}

/** Resolves to whether the step has come; it is then held back, with all that follows it. */
function holdAt({ line, direction = 'toServer', matches }: Step, lines: Lines): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (came: boolean) => {
      remove();
      clearTimeout(timer);
      resolve(came);
    };
    const timer = setTimeout(() => end(false), COMES_WITHIN);
    const remove = lines[line].onData(direction, (data, seen) => {
      if (!matches(data, seen)) return 'forward';
      end(true);
      return 'hold';
    });
  });
}
