import { expect, test } from 'vitest';
import { MOST_REFUSALS, type Refusal } from '../../src/base/refusal.js';
import { Refusals } from '../../src/lease/refusals.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/shop.js';
import { turnOfLoop } from './actors.js';

const refusal = (id: number): Refusal => ({ id: String(id), key: 'stock:1', token: '5', reason: 'other-key' });

/** A store that answers when it is told to, and what it was sent. */
function slow() {
  const sent: string[][] = [];
  const answers: Array<{ readonly fails: boolean; readonly gate: ReturnType<typeof gate<void>> }> = [];
  return {
    sent,
    answers,
    noteRefusals: async (refusals: readonly Refusal[]) => {
      sent.push(refusals.map(({ id }) => id));
      const answer = { fails: sent.length === 1, gate: gate() };
      answers.push(answer);
      await answer.gate.opened;
      if (answer.fails) throw new Error('Redis has gone.');
    },
  };
}

test('refusals are sent behind the turn of the event loop that they come in, together', async () => {
  const store = slow();
  const refusals = new Refusals(store);
  refusals.note(refusal(1));
  refusals.note(refusal(2));
  await Promise.resolve();
  expect(store.sent).toEqual([]);
  await turnOfLoop();
  expect(store.sent).toEqual([['1', '2']]);
});

test('one command is under way at a time, the next one has the last of those that came meanwhile, and a failure ends nothing', async () => {
  const store = slow();
  const refusals = new Refusals(store);
  refusals.note(refusal(0));
  await eventually('the first is sent', async () => store.sent.length === 1);
  for (let id = 1; id <= MOST_REFUSALS + 5; id++) refusals.note(refusal(id));
  await turnOfLoop();
  expect(store.sent).toHaveLength(1);
  store.answers[0]?.gate.open();
  await eventually('the others are sent', async () => store.sent.length === 2);
  expect(store.sent[1]).toEqual(Array.from({ length: MOST_REFUSALS }, (_, at) => String(at + 6)));
  store.answers[1]?.gate.open();
  await turnOfLoop();
  refusals.note(refusal(999));
  await eventually('it goes on', async () => store.sent.length === 3);
});
