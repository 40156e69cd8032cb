import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { admitByHand } from '../../support/admit-by-hand.js';
import { FenceWorld } from '../../support/fence-world.js';

const world = new FenceWorld('guard_twice', 'prove');

test('under the guard a turn may write a row again that it has written', async () => {
  const session = await world.session();
  const name = randomUUID();
  await session.query('BEGIN');
  await session.query(admitByHand({ keys: [name] }));
  await session.query('INSERT INTO people."Tag" (name, value) VALUES ($1, 1)', [name]);
  for (const value of [2, 3]) await session.query('UPDATE people."Tag" SET value = $2 WHERE name = $1', [name, value]);
  await session.query('COMMIT');
  const { rows } = await world.admin.query('SELECT value FROM people."Tag" WHERE name = $1', [name]);
  expect(rows).toEqual([{ value: 3 }]);
});
