import { expect, onTestFinished, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { type RedisServer, startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { someKey } from '../waiting/actors.js';
import { polled, QuorumActor, type QuorumOptions } from './quorum-actor.js';
import { overUnevenLine } from './uneven-line.js';

const ROUNDS = Number(process.env['FENCED_LOCK_ROUNDS'] ?? 50);
const CONTENDERS = 8;
/** A round that takes so long hangs. */
const HANGS = 30_000;

/** Each contender reaches each node at another time: otherwise one of them would come first everywhere. */
const uneven: QuorumOptions = { wrap: (nodes) => nodes.map((node) => overUnevenLine(node, () => Math.random() * 3)) };

/** All ask at once, and each has its turn. */
async function round(actors: readonly QuorumActor[]): Promise<number> {
  const key = someKey();
  const from = now();
  let inside = 0;
  await Promise.all(
    actors.map(async (actor) => {
      const turn = await actor.acquire(key, { waitTime: HANGS });
      expect(++inside).toBe(1);
      await actor.clients.at(-1)?.ping();
      inside--;
      turn.end();
    }),
  );
  return now() - from;
}

const whole = async () => {};

/** The votes of all the others are needed. */
async function oneDeadOneFrozen([dead, frozen]: readonly RedisServer[]): Promise<void> {
  await dead?.killHard();
  frozen?.freeze();
  onTestFinished(() => frozen?.thaw());
}

for (const [how, count, options, hurt] of [
  ['2 nodes', 2, uneven, whole],
  ['4 nodes', 4, uneven, whole],
  ['3 nodes', 3, uneven, whole],
  ['2 nodes, polled', 2, { ...uneven, ...polled }, whole],
  ['5 nodes, one dead and one frozen', 5, uneven, oneDeadOneFrozen],
] as const) {
  describeWithGroup(
    how,
    () => startQuorum(count),
    (group) => {
      test(
        `each of ${ROUNDS} rounds of ${CONTENDERS} contenders ends`,
        async () => {
          const actors = Array.from({ length: CONTENDERS }, () => new QuorumActor(group(), options));
          await Promise.all(actors.flatMap(({ clients }) => clients.map((client) => client.ping())));
          await hurt(group().nodes);
          const times: number[] = [];
          for (let each = 0; each < ROUNDS; each++) times.push(await round(actors));
          times.sort((a, b) => a - b);
          const [median, longest] = [times[Math.floor(ROUNDS / 2)] ?? 0, times.at(-1) ?? 0];
          const splits = actors.reduce((sum, { store }) => sum + store.splits.count, 0);
          console.log(
            `${how}: ${ROUNDS} rounds, median ${Math.round(median)} ms, longest ${Math.round(longest)} ms, ` +
              `${(splits / ROUNDS).toFixed(1)} split votes a round`,
          );
          expect(splits).toBeGreaterThan(ROUNDS);
          if (hurt === whole) expect(actors.flatMap(({ events }) => events)).toEqual([]);
        },
        ROUNDS * 2_000 + HANGS,
      );
    },
  );
}
