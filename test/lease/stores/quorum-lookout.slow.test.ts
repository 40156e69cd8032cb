import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { MOST_WAITERS } from '../../../src/lease/store.js';
import { untilHolds } from '../../support/eventually.js';
import { startQuorum } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { PREFIX, queueName, someKey } from '../actors.js';
import { quorumStage } from './quorum-stage.js';

describeWithGroup(
  'who looks at three nodes',
  () => startQuorum(3),
  (group) => {
    const { freeze, thaw, kill, restart, connected } = quorumStage(group);
    const refusal = () => ({ id: randomUUID(), key: someKey(), token: '5', reason: 'other-key' });

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

    test('reads each refused write once, also one that a node which was down has not', async () => {
      const actor = await connected();
      const [before, meanwhile] = [refusal(), refusal()];
      await actor.store.noteRefusals([before]);
      await kill(2);
      await untilHolds(() => expect(actor.clients[2]?.status).not.toBe('ready'));
      await actor.store.noteRefusals([meanwhile]);
      await restart(2);
      await untilHolds(() => expect(actor.clients[2]?.status).toBe('ready'));
      const read = (await actor.store.refusals()).map(({ id }) => id);
      expect(read).toEqual([before.id, meanwhile.id]);
    });

    test('does not wait for a frozen node, and a node that refuses to note is as good for locks as before', async () => {
      const actor = await connected();
      for (const client of actor.clients) await client.del(`${PREFIX}fenced-lock-refusals`);
      const noted = refusal();
      await actor.store.noteRefusals([noted]);
      freeze(0);
      const since = performance.now();
      expect((await actor.store.refusals()).map(({ id }) => id)).toEqual([noted.id]);
      // Shorter than a command may take.
      expect(performance.now() - since).toBeLessThan(1_500);
      thaw(0);
      for (const client of actor.clients) await client.set(`${PREFIX}fenced-lock-refusals`, 'of other software');
      await actor.store.noteRefusals([refusal()]);
      await expect(actor.store.refusals()).rejects.toThrow('WRONGTYPE');
      for (const client of actor.clients) await client.del(`${PREFIX}fenced-lock-refusals`);
      expect(actor.events).toEqual([]);
    });
  },
);
