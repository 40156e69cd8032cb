import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { READ, WRITE } from './strategies/redis-fenced.js';
import { fenceIn, quantityIn } from './strategies/strategy.js';

/** Reads, and leaves the fence as it is. */
const PLAIN_READ = "return redis.call('GET', KEYS[1])";

describeWithShop('a token that is compared in Redis', () => {
  const shop = new Shop();

  /** Two holders of one key: the older one writes after the newer one has read. Resolves to what is left of 10. */
  async function lateWrite(read: string): Promise<{ refused: boolean; left: number }> {
    const redis = shop.redis();
    const id = randomInt(2 ** 40);
    const names = [quantityIn(id), fenceIn(id)] as const;
    await redis.set(quantityIn(id), 10);
    const older = Number(await redis.eval(read, 2, ...names, '5'));
    const newer = Number(await redis.eval(read, 2, ...names, '6'));
    const late = await redis.eval(WRITE, 2, ...names, '5', older - 1).then(
      () => undefined,
      (error: Error) => error.message,
    );
    await redis.eval(WRITE, 2, ...names, '6', newer - 1);
    return { refused: late?.startsWith('STALE') === true, left: Number(await redis.get(quantityIn(id))) };
  }

  test('refuses the late write of an older holder, because the read of the newer one has raised the fence', async () => {
    expect(await lateWrite(READ)).toEqual({ refused: true, left: 9 });
  });

  test('compared at the write alone, it accepts both writes, and one sale is lost (control)', async () => {
    expect(await lateWrite(PLAIN_READ)).toEqual({ refused: false, left: 9 });
  });

  test('is compared as a whole number of any length', async () => {
    const redis = shop.redis();
    const id = randomInt(2 ** 40);
    const names = [quantityIn(id), fenceIn(id)] as const;
    await redis.set(quantityIn(id), 10);
    for (const token of ['9', '10', '9007199254740992', '9007199254740993']) await redis.eval(READ, 2, ...names, token);
    await expect(redis.eval(READ, 2, ...names, '9007199254740992')).rejects.toThrow('STALE');
    await expect(redis.eval(READ, 2, ...names, '9')).rejects.toThrow('STALE');
  });
});
