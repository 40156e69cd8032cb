import { together } from '../measure/burst.js';
import { type Heat, heats } from '../measure/heats.js';
import { stamp } from '../measure/stamp.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import { type Remote, withRemotes } from '../workers/remote.js';
import type { SellerVerbs } from '../workers/seller.worker.js';
import type { Scenario } from './scenario.js';

const PROCESSES = 4;
const CALLERS = 16;
const ALONE = 64;
/** Until all have got the word; ms. */
const NOTICE = 50;

export const hotKeyProcesses: Scenario = {
  name: 'hot-key-processes',
  about: 'the same burst from four processes with 16 callers each',
  run: (stage, run) =>
    withRemotes<SellerVerbs, Table[]>('./seller.worker.ts', stage.site, PROCESSES, async (remotes) => {
      const all: Heat[] = [];
      for (const contestant of run.few) {
        const tally = await Tally.of(stage, contestant, PROCESSES);
        const task = { contestant: contestant.name, sale: tally.sale };
        const count = run.warmUp;
        const warm = await Promise.all(
          remotes.map((remote, index) => remote.ask('warmUp', { ...task, sale: tally.saleOf(index), count })),
        );
        for (const ok of warm) tally.add({ ok, failed: {} });
        const [first] = remotes as readonly [Remote<SellerVerbs>];
        all.push({
          contestant,
          tally,
          isHere: false,
          alone: () => first.ask('alone', { ...task, count: run.size(ALONE, 8) }),
          burst: async () => {
            const at = stamp() + NOTICE;
            return together(
              await Promise.all(remotes.map((remote) => remote.ask('burst', { ...task, callers: CALLERS, at }))),
            );
          },
        });
      }
      const title = `${PROCESSES} processes with ${CALLERS} callers each`;
      return [await heats(title, run, all, { count: run.size(10, 1), budget: 18_000 })];
    }),
};
