import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import type { Query, Row } from '../../src/database/database.js';
import { ADMIT, EVIDENCE } from '../../src/database/sql.js';
import type { Admission } from '../../src/transaction/admission.js';
import { type Evidence, judge, resolveOutcome } from '../../src/transaction/commit.js';
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

const admission: Admission = {
  key: 'stock:1',
  attempt: 'ours',
  tokens: [100n],
  token: 100n,
  turn: 50n,
  xid: '1000',
  pid: 1,
  epoch: 'e1',
};
const evidence: Evidence = { status: 'committed', epoch: 'e1', born: 10n, turns: 50n, attempts: ['ours', 'before'] };
const without = (...attempts: string[]) => ({ attempts });

describe('the rule of the outcome', () => {
  test.each<[string, Partial<Evidence>, string]>([
    ['aborted is the truth in any epoch', { status: 'aborted', epoch: undefined }, 'aborted'],
    ['an xid that was never given out was lost', { status: 'future', epoch: 'e2' }, 'aborted'],
    ['in progress in the same epoch: look again', { status: 'in progress' }, 'open'],
    ['in progress in another epoch may still be it: look again', { status: 'in progress', epoch: 'e2' }, 'open'],
    ['committed in the same epoch is the truth, whatever the row says', { born: undefined }, 'committed'],
    ['committed in another epoch, and in the history', { epoch: 'e2' }, 'committed'],
    ['committed in another epoch, and not in the history', { epoch: 'e2', ...without('other') }, 'aborted'],
    ['no epoch since the crash, and in the history', { epoch: undefined }, 'committed'],
    ['too long ago to be known, and in the history', { status: undefined }, 'committed'],
    ['fewer turns than ours: ours is not among them', { epoch: 'e2', turns: 49n, ...without('before') }, 'aborted'],
    ['15 turns later the history would still have it', { epoch: 'e2', turns: 65n, ...without('a') }, 'aborted'],
    ['16 turns later it proves nothing', { epoch: 'e2', turns: 66n, ...without('a') }, 'unknown'],
    ['no row proves nothing', { epoch: 'e2', born: undefined, turns: 0n, ...without() }, 'unknown'],
    ['a row born after our token proves nothing', { epoch: 'e2', born: 100n, ...without('a') }, 'unknown'],
    ['a row born just before our token was ours', { epoch: 'e2', born: 99n }, 'committed'],
  ])('%s', (_, change, outcome) => {
    expect(judge(admission, { ...evidence, ...change })).toBe(outcome);
  });

  test('with no epoch at the admission, "in progress" and "committed" are not taken for another\'s or ours', () => {
    const unknown = { ...admission, epoch: undefined };
    expect(judge(unknown, { ...evidence, status: 'in progress', epoch: undefined })).toBe('open');
    expect(judge(unknown, { ...evidence, status: 'future', epoch: undefined })).toBe('aborted');
    expect(judge(unknown, { ...evidence, epoch: undefined, ...without('a') })).toBe('aborted');
  });
});
