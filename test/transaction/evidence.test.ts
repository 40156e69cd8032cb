import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import type { Query, Row } from '../../src/database/database.js';
import { ADMIT, EVIDENCE } from '../../src/database/sql.js';
import type { Admission } from '../../src/transaction/admission.js';
import { resolveOutcome } from '../../src/transaction/commit.js';
import { describeWithShop, Shop } from '../support/shop.js';

type Told = Pick<Admission, 'token' | 'turn' | 'attempt'>;

describeWithShop('the outcome of a transaction of another crash epoch', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const rescueOf =
    (session: Pick<pg.ClientBase, 'query'>): Query =>
    async (text, values) =>
      (await session.query<Row>(text, [...values])).rows;

  async function outcomeOf(xid: string, key: string, told: Told, within: number, rescue = rescueOf(shop.admin)) {
    const lost = { key, xid, pid: 0, epoch: randomUUID() };
    return await resolveOutcome(rescue, { ...lost, ...told, tokens: [told.token] }, new Deadline(within));
  }

  /** A transaction that an attempt has begun, as its session has it. */
  async function admitted(session: pg.ClientBase, key: string, attempt: string) {
    await session.query('BEGIN');
    const { rows } = await session.query(ADMIT, [key, randomUUID(), attempt, 30_000, 20_000, 1_000, 1]);
    const [turn, xid, , , token] = (rows[0] as { answer: string }).answer.split(' ') as [string, string, ...string[]];
    return { xid, told: { token: BigInt(token as string), turn: BigInt(turn), attempt } };
  }

  test.each([
    ['committed', 'its own', true],
    ['aborted', "another one's", false],
  ] as const)('is open while its xid is in progress, and then %s if the xid is %s', async (ended, _, isOwn) => {
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    const attempt = randomUUID();
    const running = await shop.admin.connect();
    try {
      const { xid, told: own } = await admitted(running, key, attempt);
      const told = isOwn ? own : { ...own, attempt: randomUUID() };
      expect(await outcomeOf(xid, key, told, 100)).toBe('unknown');
      await running.query('COMMIT');
      expect(await outcomeOf(xid, key, told, 5_000)).toBe(ended);
    } finally {
      running.release();
    }
  });

  test('is committed, if it commits while its row is read by an older snapshot', async () => {
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    const [running, looking] = [await shop.admin.connect(), await shop.admin.connect()];
    try {
      const { xid, told } = await admitted(running, key, randomUUID());
      // As a single statement does under this default, between its snapshot and `pg_xact_status`.
      await looking.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await looking.query('SELECT FROM fenced_lock.admission');
      await running.query('COMMIT');
      const rescue: Query = async (text, values) => {
        const rows = await rescueOf(looking)(text, values);
        if (text === EVIDENCE) await looking.query('COMMIT');
        return rows;
      };
      expect(await outcomeOf(xid, key, told, 5_000, rescue)).toBe('committed');
    } finally {
      running.release();
      looking.release();
    }
  });
});
