import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { EVIDENCE } from '../../src/database/sql.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

/** Longer than any test may take: a call that tries again until then fails. */
const PATIENT = { waitTime: 120_000 };

describeWithShop('a standby', () => {
  let server: PostgresServer;
  let app: string;
  const shop = new Shop(() => ({ postgres: app, admin: server.url, redis: inject('redis').url as string }));
  let key: string;

  test.beforeAll(async () => {
    server = await startPostgres();
    shop.closeLater(() => server.stop());
    app = await setUpShop(server);
    ({ key } = await shop.product(10));
    await shop.client().prisma.$withLock(key, (tx) => tx.stock.count());
    // Of no primary: it waits for one, and answers reads.
    const signal = join(server.dir as string, 'data', 'standby.signal');
    writeFileSync(signal, '');
    chmodSync(signal, 0o666);
    await server.restart();
  });

  const refusal = {
    code: 'LOCK_UNAVAILABLE',
    message: expect.stringMatching(/^The database is read-only.*Nothing was done: .*writable primary/),
  };

  const CALLS: Record<string, (prisma: ShopClient, work: () => void) => Promise<unknown>> = {
    $withLock: (prisma, work) => prisma.$withLock(key, work, PATIENT),
    '$withLock of a new key': (prisma, work) => prisma.$withLock(`${key} new`, work, PATIENT),
    '$withLock of several keys': (prisma, work) => prisma.$withLock([key, `${key} too`], work, PATIENT),
    $tryWithLock: (prisma, work) => prisma.$tryWithLock(key, work),
    $oncePer: (prisma, work) => prisma.$oncePer(key, 1_000, work),
    $lock: (prisma) => prisma.$lock(key, PATIENT),
  };

  test.each(Object.entries(CALLS))('refuses %s at once with an error of the lock', async (_, call) => {
    let runs = 0;
    await expect(call(shop.client().prisma, () => runs++)).rejects.toMatchObject(refusal);
    expect(runs).toBe(0);
  });

  test('tells nothing of a COMMIT without an answer, which it may not have replayed yet', async () => {
    const asked = shop.admin.query(EVIDENCE, [key, '1000000']);
    await expect(asked).rejects.toMatchObject({ code: '0A000' });
  });

  test('serves locks once it is promoted', async () => {
    const { prisma } = shop.client();
    await expect(prisma.$withLock(key, () => 'in', PATIENT)).rejects.toMatchObject(refusal);
    await shop.admin.query('SELECT pg_promote()');
    await expect(prisma.$withLock(key, () => 'in', PATIENT)).resolves.toBe('in');
  });

  test('is not what an admission has met that the server does not support', async () => {
    // Promoted by the last test.
    await shop.admin.query(`CREATE OR REPLACE FUNCTION fenced_lock.limit_times(lease_time integer, work_time integer)
      RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no such thing' USING ERRCODE = '0A000'; END $$`);
    const held = shop.client().prisma.$withLock(key, () => 'in', PATIENT);
    await expect(held).rejects.toMatchObject({ code: '0A000', message: expect.stringContaining('no such thing') });
  });
});
