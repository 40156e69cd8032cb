import { afterAll, beforeAll, describe, test } from 'vitest';
import { groupsUnavailable } from './servers/index.js';

/** A suite with servers of its own; where they are unavailable, one skipped test shows the reason. */
export function describeWithGroup<Group extends { stop(): Promise<void> }>(
  name: string,
  start: () => Promise<Group>,
  suite: (group: () => Group) => void,
  unavailable = groupsUnavailable(),
): void {
  describe(name, () => {
    if (unavailable !== undefined) {
      test.skip(unavailable, () => {});
      return;
    }
    let group: Group | undefined;
    beforeAll(async () => {
      group = await start();
    });
    afterAll(() => group?.stop());
    suite(() => {
      if (group === undefined) throw new Error('the servers are not started yet: use them in a test or in a hook');
      return group;
    });
  });
}
