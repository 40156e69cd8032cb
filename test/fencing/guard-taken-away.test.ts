import { expect, test, vi } from 'vitest';
import { StaleTokenError } from '../../src/index.js';
import { type FenceClient, FenceWorld, guardSql, TABLES } from '../support/fence-world.js';
import { describeWithShop } from '../support/shop.js';
import { beginAgain, raise } from './writes/rows.js';

/** The monotonic clock of this process, which the package takes when it is imported. */
const clock = vi.hoisted(() => {
  const real = performance.now.bind(performance);
  const moved = { ahead: 0 };
  performance.now = () => real() + moved.ahead;
  return moved;
});

describeWithShop('a guard that is taken away while a client is at work', () => {
  const world = new FenceWorld('fence_guard_taken_away', 'allow', ['Badge', 'Tag']);

  async function takeAway(model: 'Badge' | 'Tag'): Promise<void> {
    const { name } = TABLES[model];
    await world.admin.query(`DROP TRIGGER zzz_fenced_lock_guard ON ${name};
      DROP TRIGGER zzz_fenced_lock_guard_truncate ON ${name}`);
  }

  /** Its own condition leaves a fresher row alone; without one it would be overwritten. */
  async function refusesStaleWrites(client: FenceClient, id: number): Promise<boolean> {
    const write = client.$withLock(`badge:${id}`, (tx) => tx.badge.update({ where: { id }, data: { value: 2 } }));
    return await write.then(
      () => false,
      (error: unknown) => error instanceof StaleTokenError,
    );
  }

  test('is asked for again by its transaction where the last answer is older than a minute', async () => {
    const client = world.client();
    const id = 1;
    await world.admin.query(beginAgain([]));
    await client.$withLock(`badge:${id}`, (tx) => tx.badge.update({ where: { id }, data: { value: 1 } }));
    await takeAway('Badge');
    await world.overriding((session) => session.query(raise('Badge', id)));
    clock.ahead += 60_001;
    expect(await refusesStaleWrites(client, id)).toBe(true);
    expect(await client.badge.findUnique({ where: { id } })).toMatchObject({ value: 50 });
    await world.admin.query(guardSql(TABLES.Badge.name, TABLES.Badge.fence, 'allow'));
  });
});
