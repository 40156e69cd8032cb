import { afterAll, beforeAll, describe, test } from 'vitest';

/** Servers that a suite can have. */
interface Startable<Group> {
  unavailable(): string | undefined;
  start(): Promise<Group>;
}

/** A suite with servers of its own; where none can be had, one skipped test shows the reason. */
export function describeWithGroup<Group extends { stop(): Promise<void> }>(
  name: string,
  { unavailable, start }: Startable<Group>,
  suite: (group: () => Group) => void,
): void {
  describe(name, () => {
    const reason = unavailable();
    if (reason !== undefined) {
      test.skip(reason, () => {});
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
