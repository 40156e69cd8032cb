import { setTimeout as sleep } from 'node:timers/promises';
import { withLockAlone } from '../contestants/index.js';
import { cpuTime } from '../measure/cpu.js';
import { interleave } from '../measure/interleave.js';
import { spread, summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import { fencedLock } from '../shipped.js';
import type { Scenario } from './scenario.js';

/** Reads of one round. */
const READS = 50;
/** Behind the last lock; ms. Async contexts are followed for a second longer. */
const QUIET = 1_500;

export const reads: Scenario = {
  name: 'reads',
  about:
    "an application's reads outside locks, by a client with this extension, with one that does nothing, and with none",
  async run(stage, run) {
    const { house } = stage;
    const { id, key } = (await Tally.of(stage, withLockAlone)).sale;
    const plain = house.prisma;
    const extended = house.prisma.$extends(fencedLock({ redis: house.redis }));
    await extended.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    await sleep(QUIET);
    const read =
      (client: { readonly stock: { findUniqueOrThrow(args: { where: { id: number } }): Promise<unknown> } }) =>
      async () => {
        for (let count = 0; count < READS; count++) await client.stock.findUniqueOrThrow({ where: { id } });
      };
    const spent: Record<string, number[]> = {};
    const counted = (name: string, action: () => Promise<void>) => {
      const times: number[] = [];
      spent[name] = times;
      return async () => {
        const before = cpuTime();
        await action();
        times.push((cpuTime() - before) / READS);
      };
    };
    const empty = plain.$extends({ client: { $nothing() {} } });
    const contestants = {
      none: counted('none', read(plain)),
      'one that does nothing': counted('one that does nothing', read(empty)),
      'this one': counted('this one', read(extended)),
    };
    const limits = { count: run.size(200, 3), warmUp: run.size(40, 1), budget: 20_000 };
    const times = await interleave(contestants, { ...limits, onRound: (round) => run.step(`round ${round}`) });
    const bare = summary(times['none'] ?? []).median;
    const rows = Object.entries(times).map(([name, own]) => ({
      extension: name,
      'median ms': summary(own).median / READS,
      'middle half': spread(
        own.map((ms) => ms / READS),
        3,
      ),
      ratio: summary(own).median / bare,
      'CPU a read, ms': summary(spent[name] ?? []).median,
      rounds: own.length,
    }));
    return [{ title: 'Reads outside locks', rows, chart: { kind: 'bar', label: 'extension', value: 'ratio' } }];
  },
};
