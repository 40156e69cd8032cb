import { queuedForUpdate, withLockAlone } from '../contestants/index.js';
import { waiting } from '../measure/waiting.js';
import type { Scenario } from './scenario.js';

export const memory: Scenario = {
  name: 'memory',
  about: 'heap of one waiting caller, against that of one in a plain queue of promises',
  async run(stage, run) {
    const rows = [];
    for (const contestant of [queuedForUpdate, withLockAlone]) {
      for (const callers of run.size([2_000, 10_000], [200])) {
        run.step(`${callers} callers, ${contestant.name}`);
        const waited = await waiting(stage, contestant, callers, 100);
        rows.push({
          contestant: contestant.name,
          callers,
          'heap KiB per caller': (waited?.heapPerCaller ?? Number.NaN) / 1_024,
        });
      }
    }
    const note =
      'Live objects after a full collection, the empty process subtracted; what the caller itself keeps is in it.';
    return [{ title: 'Heap of a waiting caller', note, rows }];
  },
};
