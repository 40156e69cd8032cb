import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { NotInstalledError } from '../../src/index.js';
import { withDatabase } from '../support/servers/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

const HOUR = 3_600_000;

type Call = (prisma: ShopClient, key: string, id: number) => Promise<unknown>;
const sale = (id: number) => (tx: Pick<ShopClient, 'stock'>) =>
  tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });

const CALLS = {
  withLock: (prisma, key, id) => prisma.$withLock(key, sale(id)),
  'withLock, of two keys': (prisma, key, id) => prisma.$withLock([key, `${key}:too`], sale(id)),
  lock: async (prisma, key, id) => {
    await using lock = await prisma.$lock(key);
    await lock.$transaction(sale(id));
  },
  oncePer: (prisma, key, id) => prisma.$oncePer(key, HOUR, sale(id)),
  inspect: (prisma, key) => prisma.$locks.inspect(key),
  history: (prisma, key) => prisma.$locks.history(key),
} satisfies Record<string, Call>;

describeWithShop('a client and the objects of another version', () => {
  const shop = new Shop();

  async function ownDatabase() {
    const name = `versions_${randomUUID().replaceAll('-', '')}`;
    const url = withDatabase(inject('postgres').admin, name);
    await shop.admin.query(`CREATE DATABASE ${name}`);
    const own = new Shop(() => ({ postgres: url, admin: url, redis: inject('redis').url as string }));
    shop.closeLater(async () => {
      await own.close();
      await shop.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    await setUpShop({ url });
    return own;
  }

  test('older ones, which lack a function: a call that needs it is refused, writes nothing, and says what to run', async () => {
    const own = await ownDatabase();
    const NEEDED_BY: Readonly<Record<string, ReadonlyArray<keyof typeof CALLS>>> = {
      'admit(text, uuid, uuid, integer, integer, integer, integer)': ['withLock'],
      'admit(text[], uuid[], uuid, integer, integer, integer, integer, bigint[], uuid[], boolean)': [
        'withLock, of two keys',
        'lock',
      ],
      'guards()': ['withLock', 'withLock, of two keys', 'lock', 'oncePer'],
      'next_run(text, integer, integer, integer)': ['oncePer'],
      'mark_run(text, integer, integer, integer)': ['oncePer'],
      'last_admission(text)': ['inspect', 'history'],
      'evidence(text, text)': ['history'],
    };
    for (const [lacking, calls] of Object.entries(NEEDED_BY)) {
      const [name = ''] = lacking.split('(');
      await own.admin.query(`ALTER FUNCTION fenced_lock.${lacking} RENAME TO lacking`);
      for (const call of calls) {
        const { id, key } = await own.product(10);
        const error = await CALLS[call](own.client().prisma, key, id).catch((error: unknown) => error);
        expect(error, `${call} without ${lacking}`).toBeInstanceOf(NotInstalledError);
        expect((error as Error).message).toMatch(/are older than this package\. Run `npx fenced-lock upgrade`/);
        expect((await own.row(id))?.quantity).toBe(10);
      }
      await own.admin.query(`ALTER FUNCTION fenced_lock.${lacking.replace(name, 'lacking')} RENAME TO ${name}`);
    }
  });

  // An argument with a default would make each call ambiguous: `function is not unique`.
  test('newer ones, with more columns, more functions and longer argument lists, serve it as its own', async () => {
    const own = await ownDatabase();
    await own.admin.query(`
      ALTER TABLE fenced_lock.admission ADD COLUMN added text NOT NULL DEFAULT 'later';
      ALTER TABLE fenced_lock.last_run ADD COLUMN added text NOT NULL DEFAULT 'later';
      ALTER TABLE fenced_lock.epoch ADD COLUMN added text NOT NULL DEFAULT 'later';
      CREATE TABLE fenced_lock.added (key text PRIMARY KEY);
      CREATE FUNCTION fenced_lock.admit(text, uuid, uuid, integer, integer, integer, integer, added text)
        RETURNS text LANGUAGE sql AS 'SELECT (1 / 0)::text';
      CREATE FUNCTION fenced_lock.mark_run(text, integer, integer, integer, added text)
        RETURNS text LANGUAGE sql AS 'SELECT (1 / 0)::text';
      CREATE FUNCTION fenced_lock.guards(added text)
        RETURNS text LANGUAGE sql AS 'SELECT (1 / 0)::text';
      COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 999'`);
    const { prisma, events } = own.client();
    for (const [name, call] of Object.entries<Call>(CALLS)) {
      const { id, key } = await own.product(10);
      await call(prisma, key, id);
      const looks = ['inspect', 'history'].includes(name);
      expect((await own.row(id))?.quantity, name).toBe(looks ? 10 : 9);
    }
    expect(events).toEqual([]);
  });
});
