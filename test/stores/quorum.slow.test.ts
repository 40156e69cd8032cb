import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { leaseName, queueName } from '../waiting/actors.js';
import { describeStore } from '../waiting/store-contract.js';
import { polled, QuorumActor } from './quorum-actor.js';

for (const count of [3, 5]) {
  describeWithGroup(
    `a quorum of ${count}`,
    () => startQuorum(count),
    (group) => {
      const actor = async (options = {}) => {
        const made = new QuorumActor(group(), options);
        // A node has a fifth of a short lease to answer, and on a busy machine a connection takes longer.
        await Promise.all(made.clients.map((client) => client.ping()));
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
