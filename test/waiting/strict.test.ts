import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { queueName, someKey } from './actors.js';
import { direct, expectFree, expectNothingLeft, setStage } from './watched-redis.js';

describeWithShop("fairness: 'strict'", () => {
  const stage = setStage();
  const strict = () => direct({ fairness: 'strict' });
  const queued = (key: string, count: number) =>
    eventually('a place in the queue', async () => (await stage().admin.llen(queueName(key))) === count);

  test('the callers of two processes have their turns in the one order in which they came', async () => {
    const [holder, key] = [strict(), someKey()];
    const actors = { A: strict(), B: strict() };
    const first = await holder.acquire(key);
    const came: string[] = [];
    const served: string[] = [];
    const callers = [];
    for (const name of ['A', 'B', 'A', 'A', 'B', 'B', 'A', 'B'] as const) {
      const caller = `${name}${came.push(name)}`;
      callers.push(
        actors[name].acquire(key).then((turn) => {
          served.push(caller);
          return actors[name].release(turn);
        }),
      );
      await queued(key, came.length);
    }
    await holder.release(first);
    await Promise.all(callers);
    expect(served).toEqual(came.map((name, index) => `${name}${index + 1}`));
    for (const actor of Object.values(actors)) await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });
});
