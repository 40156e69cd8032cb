import { PrismaPg } from '@prisma/adapter-pg';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { StaleTokenError } from '../../src/index.js';
import { seed } from '../options/seed.js';
import { atWork, describeWithShop, Shop, type ShopClient, sale } from '../support/shop.js';

describeWithShop('an admission that is prepared under a name', () => {
  const shop = new Shop();

  /** A client with one connection, and how many admissions that one knows by name. */
  function narrow() {
    const { prisma, plain } = shop.client({ pool: { max: 1 }, unsetKeyParts: 'allow' });
    const known = async () => {
      const [{ known }] = await plain.$queryRaw<[{ known: number }]>`
        SELECT count(*)::int AS known FROM pg_prepared_statements WHERE statement LIKE 'SELECT fenced_lock.admit(%'`;
      return known;
    };
    return { prisma, plain, known };
  }

  const sellOne = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
    prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));

  test('is there once on the connection for one key, and once for several keys and handles', async () => {
    const { prisma, known } = narrow();
    const [product, other] = [await shop.product(10), await shop.product(10)];
    await sellOne(prisma, product);
    await prisma.$withLock([product.key, other.key], () => {});
    const lock = await prisma.$lock(product.key);
    await lock.$transaction(() => {});
    await lock.release();
    expect(await known()).toBe(2);
    expect((await shop.row(product.id))?.quantity).toBe(9);
  });

  test.each(['DEALLOCATE ALL', 'DISCARD ALL'])(
    'is begun again after %s, and goes without a name from then on: for calls and for handles',
    async (forget) => {
      const { prisma, plain, known } = narrow();
      const product = await shop.product(10);
      const takeHandle = async () => {
        await using lock = await prisma.$lock(product.key);
        return await lock.$transaction(() => 'in');
      };
      await sellOne(prisma, product);
      await takeHandle();
      expect(await known()).toBe(2);
      await plain.$executeRawUnsafe(forget);
      expect(await takeHandle()).toBe('in');
      expect((await sellOne(prisma, product)).quantity).toBe(8);
      expect(await known()).toBe(0);
    },
  );

  test('that is lost with the COMMIT before it takes nothing from that COMMIT, and the next turn begins by itself', async () => {
    const { prisma } = narrow();
    const product = await shop.product(10);
    await sellOne(prisma, product);
    const { held: first, goOn } = await atWork(prisma, product.key, async (tx) => {
      await tx.stock.update({ where: { id: product.id }, data: { quantity: { decrement: 1 } } });
      await tx.$executeRaw`DEALLOCATE ALL`;
      return 'first';
    });
    const others = Array.from({ length: 3 }, () => sellOne(prisma, product));
    goOn();
    expect(await first).toBe('first');
    expect((await Promise.all(others)).map(({ quantity }) => quantity)).toEqual([7, 6, 5]);
  });

  const PIECES = [...'"\\{},\'`( ', '$1', 'NULL', 'null', '\n', '\t', '\u0001', 'ß', '鎖', '🔒'];
  const unit = fc.oneof(fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }), fc.constantFrom(...PIECES));
  const key = fc
    .array(unit, { minLength: 1, maxLength: 40 })
    .map((units) => units.join('').replaceAll('\0', ''))
    .filter((one) => one !== '' && Buffer.byteLength(one) <= 512);

  test('has the keys that its caller named, whatever is in them', async () => {
    const { prisma } = narrow();
    const admitted = async (keys: readonly string[]) => {
      const xid = await prisma.$withLock([...keys], async (tx) => {
        const [own] = await tx.$queryRaw<[{ xid: string }]>`SELECT pg_current_xact_id()::text AS xid`;
        return own.xid;
      });
      const { rows } = await shop.admin.query<{ key: string }>(
        'SELECT key FROM fenced_lock.admission WHERE xid = $1::text::xid8 ORDER BY key COLLATE "C"',
        [xid],
      );
      return rows.map((row) => row.key);
    };
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(key, { minLength: 1, maxLength: 6 }), async (keys) => {
        const inOrder = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
        expect(await admitted(keys)).toEqual(inOrder);
      }),
      {
        seed,
        numRuns: 50,
        examples: [
          [['NULL']],
          [['null', 'NULL', '""', '"NULL"']],
          [['\\', '\\\\', '"', '{}', '{', ',']],
          [[' a ', 'a']],
        ],
      },
    );
  });
});

describeWithShop('statements that the adapter prepares under names', () => {
  const shop = new Shop();

  /** A name for each text, as a cache of statements has it. */
  function naming() {
    const names = new Map<string, string>();
    const statementNameGenerator = ({ sql }: { sql: string }) => {
      const name = names.get(sql) ?? `s${names.size}`;
      names.set(sql, name);
      return name;
    };
    const adapter = new PrismaPg({ connectionString: inject('postgres').app, max: 1 }, { statementNameGenerator });
    return { ...shop.client({ adapter }), names };
  }

  test('are as safe as others: no update is lost, and a stale one is refused', async () => {
    const { id, key } = await shop.product(10);
    const { plain, prisma, names } = naming();
    const sell = () =>
      prisma.$withLock(key, async (tx, lock) => {
        await sale(id)(tx);
        return lock.token;
      });
    const contender = shop.client().prisma;
    // On one connection: from the second time on, each statement is only bound.
    for (let turn = 0; turn < 4; turn++) {
      await sell();
      await contender.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    }
    const token = await sell();
    expect(await shop.row(id)).toEqual({ quantity: 1, fence: token });
    const [{ prepared }] = await plain.$queryRaw<[{ prepared: number }]>`
      SELECT count(*)::int AS prepared FROM pg_prepared_statements`;
    expect(prepared).toBeGreaterThan(2);
    expect(names.size).toBeGreaterThanOrEqual(prepared);
    await shop.admin.query('UPDATE "Stock" SET fence = fence + 1000000 WHERE id = $1', [id]);
    await expect(sell()).rejects.toBeInstanceOf(StaleTokenError);
  });
});
