import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { forget } from '../call/handle-work.js';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient, sale } from '../support/shop.js';

/*
 * Where each promise is shown (docs/correctness.md):
 *
 * | promise                                                    | file                                                  |
 * | ---------------------------------------------------------- | ----------------------------------------------------- |
 * | G1: serial, in token order                                 | g1-serial, and with COMMIT: test/call/chain           |
 * | G2: a row never goes back                                  | g2-rows                                               |
 * | G3: what the caller is told is what became of the work     | g3-outcome, errors                                    |
 * | G4: a waiting caller costs nothing                         | g4-waiting                                            |
 * | G5: a crash delays the others by the lease                 | g5-crash, g5-clocks                                   |
 * | a lock inside a lock joins it, or is refused               | context                                               |
 * | each error code; each option                               | errors; options                                       |
 * | hooks tell the outcome; $oncePer runs once                 | test/call/after-commit; test/call/once-per            |
 * | a handle keeps its token; operators; shutdown              | test/call/handles*; test/call/operators, shutdown     |
 */

/**
 * The interleaving in which a condition on the written row alone loses an update: the contender has its turn
 * although the holder's work goes on, because Redis has let both in (here: they do not even share their names).
 */
async function bothLetIn(shop: Shop, quantity: number, id: number, key: string): Promise<void> {
  const holder = shop.client({ keyPrefix: 'one-side:' }).prisma;
  const contender = shop.client({ keyPrefix: 'other-side:' }).prisma;
  const [read, goOn, contenderRead] = [gate(), gate(), gate()];
  const held = holder.$withLock(
    key,
    sale(id, () => {
      read.open();
      return goOn.opened;
    }),
  );
  await read.opened;
  const contended = contender.$withLock(
    key,
    sale(id, () => {
      contenderRead.open();
      return held;
    }),
  );
  // Either it waits in its admission, or nothing keeps it out and it has read.
  await Promise.race([shop.blocked('fenced_lock.admit'), contenderRead.opened]);
  goOn.open();
  await Promise.all([held, contended]);
  expect((await shop.row(id))?.quantity).toBe(quantity - 2);
}

describeWithShop('G1: committed transactions under one key are serial', () => {
  const shop = new Shop();

  test('read-modify-write by 20 callers of two clients loses no update, and tokens rise', async () => {
    const { id, key } = await shop.product(100);
    const buyers = [shop.client().prisma, shop.client().prisma];
    const sales = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (buyers[index % 2] as ShopClient).$withLock(key, async (tx, { token }) => ({
          token,
          left: await sale(id)(tx),
        })),
      ),
    );
    const inTokenOrder = sales.toSorted((a, b) => (a.token < b.token ? -1 : 1));
    expect(inTokenOrder.map(({ left }) => left)).toEqual(Array.from({ length: 20 }, (_, index) => 99 - index));
    expect(await shop.row(id)).toEqual({ quantity: 80, fence: inTokenOrder.at(-1)?.token });
  });

  test('two holders that Redis let in at once lose no update', async () => {
    const { id, key } = await shop.product(10);
    await bothLetIn(shop, 10, id, key);
  });

  test('the same loses an update when the admission draws a token without taking the row (control)', async () => {
    const { admin } = inject('postgres');
    const database = new pg.Pool({ connectionString: admin, max: 1 });
    shop.closeLater(() => database.end());
    await database.query('DROP DATABASE IF EXISTS without_admission WITH (FORCE)');
    await database.query('CREATE DATABASE without_admission');
    const other = (url: string) => Object.assign(new URL(url), { pathname: '/without_admission' }).href;
    await applyMigrations(other(admin));
    const broken = new Shop(() => ({ postgres: other(admin), admin: other(admin), redis: inject('redis').url ?? '' }));
    await broken.admin.query(`
      CREATE OR REPLACE FUNCTION fenced_lock.admit(
        our_key text, our_holder uuid, attempt uuid, lease_time integer, work_time integer, wait_time integer, room integer
      ) RETURNS text LANGUAGE sql AS $$
        SELECT concat_ws(' ', 1, pg_current_xact_id(), pg_backend_pid(), '-', nextval('fenced_lock.token'), '-')
      $$`);
    const { id, key } = await broken.product(10);
    await expect(bothLetIn(broken, 10, id, key)).rejects.toThrow('expected 9 to be 8');
    await broken.close();
  });

  test.each(['RepeatableRead', 'Serializable'] as const)(
    'under %s a snapshot older than the turn before is begun again, not read from',
    async (isolationLevel) => {
      const { id, key } = await shop.product(10);
      const clients = [shop.client({ keyPrefix: 'one-side:' }), shop.client({ keyPrefix: 'other-side:' })];
      await Promise.all(
        clients.flatMap(({ prisma }) =>
          Array.from({ length: 5 }, () => prisma.$withLock(key, sale(id), { isolationLevel })),
        ),
      );
      expect((await shop.row(id))?.quantity).toBe(0);
    },
  );

  test('a transaction of a former holder that stands in the key is ended by the next one', async () => {
    const { id, key } = await shop.product(10);
    const frozen = shop.client().prisma;
    const contender = shop.client();
    const inside = gate();
    const late = gate();
    const held = frozen.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      inside.open();
      await late.opened;
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
    });
    // It hears of its end at once.
    held.catch(() => {});
    await inside.opened;
    await forget(shop, key);
    await contender.prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    late.open();
    await expect(held).rejects.toThrow();
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(contender.events.map(({ type }) => type)).toContain('backend-ended');
  });
});
