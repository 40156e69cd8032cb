import { afterAll, beforeAll, describe, test } from 'vitest';
import { groupsUnavailable } from './servers/index.js';

/** A suite with servers of its own; where they are unavailable, one skipped test shows the reason. */
export function describeWithGroup<Group extends { stop(): Promise<void> }>(
  name: string,
  start: () => Promise<Group>,
  suite: (group: () => Group) => void,
  unavailable = groupsUnavailable() ?? '',
): void {
  describe(name, () => {
    if (unavailable === '') suite(started(start));
    else test.skip(unavailable, () => {});
  });
}

/** Started before the tests of the current suite, and stopped behind them. */
export function started<Group extends { stop(): Promise<void> }>(start: () => Promise<Group>): () => Group {
  let group: Group | undefined;
  beforeAll(async () => {
    group = await start();
  });
  afterAll(() => group?.stop());
  return () => {
    if (group === undefined) throw new Error('the servers are not started yet: use them in a test or in a hook');
    return group;
  };
}
