import { afterAll, beforeAll, describe, test } from 'vitest';
import { groupsUnavailable, startValkey, valkeyUnavailable } from './servers/index.js';

/** What is started and stopped for a suite. */
interface Stoppable {
  stop(): Promise<void>;
}

/** Why these servers cannot be had here. In CI there has to be a Redis; Valkey is not in every release of Debian. */
export function reasonToSkip(start: () => Promise<Stoppable>): string | undefined {
  if (start === startValkey) return valkeyUnavailable();
  const inCI = ![undefined, '', '0', 'false'].includes(process.env['CI']);
  return inCI ? undefined : groupsUnavailable();
}

/** A suite with servers of its own; where none can be had, one skipped test shows the reason. */
export function describeWithGroup<Group extends Stoppable>(
  name: string,
  start: () => Promise<Group>,
  suite: (group: () => Group) => void,
): void {
  describe(name, () => {
    const reason = reasonToSkip(start);
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
