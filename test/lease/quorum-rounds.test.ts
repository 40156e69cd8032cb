import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { someKey } from './actors.js';
import { polled, QuorumActor } from './quorum-actor.js';

const ROUNDS = Number(process.env['FENCED_LOCK_ROUNDS'] ?? 60);
const CONTENDERS = 8;
/** A round that takes so long hangs. */
const HANGS = 30_000;

/** All ask at once, and each has its turn. */
async function round(actors: readonly QuorumActor[]): Promise<number> {
  const key = someKey();
  const from = now();
  let inside = 0;
  await Promise.all(
    actors.map(async (actor) => {
      const turn = await actor.acquire(key, { waitTime: HANGS });
      expect(++inside).toBe(1);
      // The others hear of what is done meanwhile.
      await new Promise((resolve) => setTimeout(resolve, randomInt(3)));
      inside--;
      turn.leave();
    }),
  );
  return now() - from;
}

for (const [count, options] of [
  [2, {}],
  [4, {}],
  [2, polled],
  [3, {}],
] as const) {
  const how = `${count} nodes${options === polled ? ', polled' : ''}`;
  describeWithGroup(
    how,
    () => startQuorum(count),
    (group) => {
      test(
        `of ${ROUNDS} rounds of ${CONTENDERS} contenders each ends`,
        async () => {
          const actors = Array.from({ length: CONTENDERS }, () => new QuorumActor(group(), options));
          const times: number[] = [];
          for (let each = 0; each < ROUNDS; each++) times.push(await round(actors));
          times.sort((a, b) => a - b);
          const [median, longest] = [times[Math.floor(times.length / 2)], times.at(-1)];
          const looks = actors.reduce((sum, { store }) => sum + store.looks.count, 0) / ROUNDS;
          console.log(
            `${how}: a round took ${Math.round(median ?? 0)} ms, at most ${Math.round(longest ?? 0)}; ${looks} looks`,
          );
          expect(actors.flatMap(({ events }) => events)).toEqual([]);
        },
        ROUNDS * 2_000 + HANGS,
      );
    },
  );
}
