import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { MOST_WAITERS } from '../../src/waiting/store.js';
import { untilHolds } from '../support/eventually.js';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { queueName, someKey } from '../waiting/actors.js';
import { quorumStage } from './quorum-stage.js';

describeWithGroup(
  'who looks at three nodes',
  () => startQuorum(3),
  (group) => {
    const { connected } = quorumStage(group);

    test('is told those who wait as the node has them that most of them wait at', async () => {
      const actor = await connected();
      const key = someKey();
      const place = (name: string) => `${randomUUID()} ${randomUUID()} ${name}`;
      const [a, b] = [place('a'), place('b')];
      await actor.clients[0]?.rpush(queueName(key), b);
      await actor.clients[1]?.rpush(queueName(key), b, a);
      await actor.clients[2]?.rpush(queueName(key), a);
      const state = { holder: undefined, waiting: 2, waiters: ['b', 'a'] };
      await untilHolds(async () => expect(await actor.store.inspect(key, MOST_WAITERS)).toMatchObject(state));
      await untilHolds(async () => {
        const [listed] = (await actor.store.list()).filter((each) => each.key === key);
        expect(listed).toMatchObject(state);
      });
    });
  },
);
