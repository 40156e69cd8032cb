import { startQuorum } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, queueName } from '../actors.js';
import { describeStore } from '../store-contract.js';
import { polled, QuorumActor } from './quorum-actor.js';

for (const count of [3, 5]) {
  describeWithGroup(
    `a quorum of ${count}`,
    () => startQuorum(count),
    (group) => {
      const actor = (options = {}) => {
        const made = new QuorumActor(group(), options);
        return {
          store: made.store,
          kill: () => made.close(),
          forget: (key: string) =>
            Promise.all(made.clients.map((client) => client.del(leaseName(key), queueName(key)))),
        };
      };
      describeStore('with wake-ups', () => actor(), { ties: true });
      describeStore('polled', () => actor(polled), { wakeUps: false, ties: true });
    },
  );
}
