import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { admitByHand, tokensOf } from '../support/admit-by-hand.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('an admission', () => {
  const shop = new Shop();

  /** A transaction that was admitted, or waits for it; `more`: with a handle's tokens, or in another isolation. */
  async function admitted(key: string, more: { holder?: string; tokens?: string[]; isolation?: string } = {}) {
    const { holder = randomUUID(), tokens, isolation = 'READ COMMITTED' } = more;
    const client = new pg.Client({ connectionString: inject('postgres').app });
    await client.connect();
    shop.closeLater(() => client.end());
    await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
    const times = { leaseTime: 60_000, workTime: 12_345, waitTime: 20_000 };
    const admission = admitByHand({ keys: [key], holders: [holder], tokens, ...times });
    const token = client
      .query<{ answer: string }>(admission)
      .then(({ rows }) => BigInt(tokensOf(rows[0]?.answer ?? '')[0] ?? 0));
    token.catch(() => {});
    return { client, token };
  }

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'of a handle that waited for another one of its own does not go on with a snapshot from before it: %s',
    async (isolation) => {
      const key = `key ${randomUUID()}`;
      const holder = randomUUID();
      const registration = await admitted(key, { holder });
      const tokens = [String(await registration.token)];
      await registration.client.query('COMMIT');
      const first = await admitted(key, { holder, tokens, isolation });
      await first.token;
      const second = await admitted(key, { holder, tokens, isolation });
      await shop.blocked('fenced_lock.admit');
      await first.client.query('COMMIT');
      await expect(second.token).rejects.toMatchObject({ code: '40001' });
      await second.client.query('ROLLBACK');
    },
  );
});
