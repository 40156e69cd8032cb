import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import { ADMIT } from '../../src/database/sql.js';
import type { Admission } from '../../src/transaction/admission.js';
import { resolveOutcome } from '../../src/transaction/lost-commit.js';
import { describeWithShop, Shop } from '../support/shop.js';

type Told = Pick<Admission, 'token' | 'turn' | 'attempt'>;

describeWithShop('the outcome of a transaction of another crash epoch', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** Of an attempt that the key has no memory of, under an xid that is another one's by now. */
  async function outcome(key: string, told: Pick<Admission, 'token' | 'turn'>) {
    const { rows } = await shop.admin.query('SELECT xid::text FROM fenced_lock.admission WHERE key = $1', [key]);
    const { xid } = rows[0] as { xid: string };
    return await outcomeOf(xid, key, { ...told, attempt: randomUUID() }, 5_000);
  }

  async function outcomeOf(xid: string, key: string, told: Told, within: number) {
    const lost = { key, xid, pid: 0, epoch: randomUUID() };
    const rescue = async (text: string, values: readonly unknown[]) =>
      (await shop.admin.query(text, [...values])).rows as Record<string, unknown>[];
    return await resolveOutcome(rescue, { ...lost, ...told, tokens: [told.token] }, new Deadline(within));
  }

  test('is a rollback where the history reaches back to it', async () => {
    const { key } = await shop.product(1);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    await prisma.$withLock(key, () => {});
    expect(await outcome(key, { token: token + 1n, turn: 1n })).toBe('aborted');
  });

  test('is unknown where more turns have passed since than the history has room for', async () => {
    const { key } = await shop.product(1);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    for (let turn = 0; turn < 17; turn++) await prisma.$withLock(key, () => {});
    expect(await outcome(key, { token, turn: 1n })).toBe('unknown');
  });

  test('is unknown where the row was born later', async () => {
    const token = await prisma.$withLock((await shop.product(1)).key, (_, lock) => lock.token);
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    expect(await outcome(key, { token, turn: 1n })).toBe('unknown');
  });

  test.each([
    ['committed', 'its own', true],
    ['aborted', "another one's", false],
  ] as const)('is open while its xid is in progress, and then %s if the xid is %s', async (ended, _, isOwn) => {
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    const attempt = randomUUID();
    const running = await shop.admin.connect();
    try {
      await running.query('BEGIN');
      const { rows } = await running.query(ADMIT, [key, randomUUID(), attempt, 30_000, 20_000, 1_000, 1]);
      const [turn, xid, , , token] = (rows[0] as { answer: string }).answer.split(' ') as [string, string, ...string[]];
      const told = { token: BigInt(token as string), turn: BigInt(turn), attempt: isOwn ? attempt : randomUUID() };
      expect(await outcomeOf(xid, key, told, 100)).toBe('unknown');
      await running.query('COMMIT');
      expect(await outcomeOf(xid, key, told, 5_000)).toBe(ended);
    } finally {
      running.release();
    }
  });
});
