import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { Actor, someKey } from '../waiting/actors.js';

describeWithShop('a client that refuses commands until it is ready', () => {
  const url = inject('redis').url as string;

  test.each([
    ['is being connected', {}],
    ['connects at its first command', { lazyConnect: true }],
  ])('and %s: the first look waits for it', async (_, options) => {
    const actor = new Actor({ url, redis: { enableOfflineQueue: false, ...options } });
    const turn = await actor.acquire(someKey(), { waitTime: 0 });
    expect(actor.events).toEqual([]);
    await actor.release(turn);
  });

  test('and whose login is refused: the first look is told so', async () => {
    const options = { enableOfflineQueue: false, username: 'nobody', password: 'wrong' };
    const actor = new Actor({ url, redis: options, commandTimeout: 500 });
    await expect(actor.acquire(someKey(), { waitTime: 0 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      cause: { message: expect.stringContaining('WRONGPASS') },
    });
  });
});
