import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PrismaClient } from '../../test/generated/prisma/client.js';
import { work } from '../contestants/contestant.js';
import { bareTransaction } from '../contestants/index.js';
import { rounds } from '../measure/rounds.js';
import { summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import { fencedLock } from '../shipped.js';
import type { Stage } from '../stage.js';
import type { Run, Scenario } from './scenario.js';

export const steps: Scenario = {
  name: 'steps',
  about: 'where the time of one uncontended sale goes, step by step, and the process’s own CPU',
  run: async (stage, run) => [await measure(stage, run)],
};

const NOTE =
  'Medians of the time since the step before, ms; a dash where there is no such step. Sending is what writing a command ' +
  'takes this process, answer what passes until its answer is read, in which other steps may fall. CPU is that of this ' +
  'process for a whole sale, the kernel’s part of it included.';

type Mark = (step: string) => void;
type Ask = (...args: unknown[]) => unknown;

/** What each statement is, by how it begins. */
const STATEMENTS: ReadonlyArray<readonly [RegExp, string]> = [
  [/^BEGIN/, 'BEGIN'],
  [/fenced_lock\.admit\(/, 'admission'],
  [/^SELECT/, 'read'],
  [/^UPDATE/, 'write'],
  [/^COMMIT/, 'COMMIT'],
];

/** As they follow each other where all of them are there. */
const ORDER = [
  ...['look', 'BEGIN', 'admission', 'read', 'write', 'COMMIT', 'release'].flatMap((of) => [
    `${of}: sending`,
    `${of}: answer`,
  ]),
  ...['told', 'total', 'CPU'],
];

async function measure(stage: Stage, run: Run): Promise<Table> {
  let marks: Array<{ readonly step: string; readonly at: number }> = [];
  const mark: Mark = (step) => void marks.push({ step, at: performance.now() });
  // The first script of a sale is the look.
  const looked = () => marks.some(({ step }) => step.startsWith('look'));
  const redis = noting(new Redis(stage.site.redis), mark, looked);
  const tally = await Tally.of(stage, bareTransaction);
  const shop = (Client: typeof pg.Client) =>
    new PrismaClient({
      adapter: new PrismaPg({ connectionString: stage.site.plain, max: 2, Client: marking(Client, mark) }),
    });
  const plain = shop(pg.Client);
  const options = { redis, keyPrefix: 'steps:' };
  const locking = plain.$extends(fencedLock(options));
  const ways: Readonly<Record<string, () => Promise<void>>> = {
    'bare $transaction': () => plain.$transaction((tx) => work(tx, tally.sale)),
    $withLock: () => locking.$withLock(tally.sale.key, (tx) => work(tx, tally.sale)),
  };
  const times = new Map<string, Map<string, number[]>>();
  const note = (step: string, way: string, ms: number) => {
    const row = times.get(step) ?? new Map<string, number[]>();
    times.set(step, row);
    row.set(way, [...(row.get(way) ?? []), ms]);
  };
  for (const way of Object.values(ways)) for (let sale = 0; sale < run.size(2_000, 3); sale++) await way();
  for (const round of rounds(run.size(600, 3), 30_000)) {
    run.step(`round ${round}`);
    for (const [way, sell] of Object.entries(ways)) {
      marks = [];
      const before = process.cpuUsage();
      mark('call');
      await sell();
      mark('told');
      const { user, system } = process.cpuUsage(before);
      marks.forEach(({ step, at }, index) => {
        const last = marks[index - 1];
        if (last) note(step, way, at - last.at);
      });
      note('total', way, (marks.at(-1)?.at ?? 0) - (marks[0]?.at ?? 0));
      note('CPU', way, (user + system) / 1_000);
      // Its release has been answered, which would else fall into somebody else's time.
      await redis.ping();
    }
  }
  await plain.$disconnect();
  redis.disconnect();
  const rows = [...times]
    .sort(([one], [other]) => ORDER.indexOf(one) - ORDER.indexOf(other))
    .map(([step, row]) => ({
      step,
      ...Object.fromEntries(
        Object.keys(ways).map((way) => [way, row.has(way) ? summary(row.get(way) ?? []).median : '–']),
      ),
    }));
  return { title: 'One sale, step by step', note: NOTE, rows };
}

/** A client of Redis that notes its scripts. */
function noting(redis: Redis, mark: Mark, looked: () => boolean): Redis {
  const send = redis.evalsha.bind(redis) as Ask;
  const evalsha: Ask = (...args) => {
    const step = looked() ? 'release' : 'look';
    const answer = send(...args) as Promise<unknown>;
    mark(`${step}: sending`);
    // Nobody waits for the answer to a release.
    if (step === 'release') return answer;
    return answer.then((value) => {
      mark(`${step}: answer`);
      return value;
    });
  };
  return Object.assign(redis, { evalsha });
}

/** A client of pg that notes its statements. */
function marking(Client: typeof pg.Client, mark: Mark): typeof pg.Client {
  return class extends Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      const ask = this.query.bind(this) as unknown as Ask;
      const query: Ask = (...args) => {
        const [first] = args;
        const text = typeof first === 'string' ? first : (first as { text: string }).text;
        const step = STATEMENTS.find(([begins]) => begins.test(text))?.[1] ?? 'other';
        const answer = ask(...args);
        // The pool's own way to ask is a callback.
        if (!(answer instanceof Promise)) return answer;
        mark(`${step}: sending`);
        return answer.then((value: unknown) => {
          mark(`${step}: answer`);
          return value;
        });
      };
      Object.defineProperty(this, 'query', { value: query, writable: true });
    }
  };
}
