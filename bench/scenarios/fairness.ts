import { together } from '../measure/burst.js';
import { fairness as fairnessOf } from '../measure/fairness.js';
import { stamp } from '../measure/stamp.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import { withRemotes } from '../workers/remote.js';
import type { SellerVerbs } from '../workers/seller.worker.js';
import type { Scenario } from './scenario.js';

const PROCESSES = 4;
const WINDOW = 64;
const NOTICE = 50;

export const fairness: Scenario = {
  name: 'fairness',
  about: 'who gets the turns when four processes come with 64 callers each',
  run: (stage, run) =>
    withRemotes<SellerVerbs, Table[]>('./seller.worker.ts', stage.site, PROCESSES, async (remotes) => {
      const rows = [];
      const callers = run.size(64, 20);
      for (const contestant of run.few.filter(({ waits }) => waits !== 'nowhere')) {
        run.step(contestant.name);
        const tally = await Tally.of(stage, contestant, PROCESSES);
        const task = { contestant: contestant.name, sale: tally.sale };
        const count = run.warmUp;
        const warm = await Promise.all(
          remotes.map((remote, index) => remote.ask('warmUp', { ...task, sale: tally.saleOf(index), count })),
        );
        for (const ok of warm) tally.add({ ok, failed: {} });
        const at = stamp() + NOTICE;
        const bursts = await Promise.all(remotes.map((remote) => remote.ask('burst', { ...task, callers, at })));
        tally.add(together(bursts));
        const { leastShare, windows, longestRun, outOfOrder } = fairnessOf(bursts, WINDOW);
        rows.push({
          contestant: contestant.name,
          'least share': leastShare,
          windows,
          'longest run': longestRun,
          'out of order, %': outOfOrder * 100,
          ...(await tally.columns()),
        });
      }
      return [{ title: `${PROCESSES} processes, ${callers} callers each`, note: NOTE, rows }];
    }),
};

const NOTE =
  `Least share: the least that a process got of any ${WINDOW} turns in a row while all had callers waiting; 1 is its fair ` +
  'share. Longest run: turns of one process in a row, while the others waited. Out of order: turns that began after one ' +
  'that was asked for later in the same process.';
