import { beforeAll, expect, test } from 'vitest';
import { StaleTokenError } from '../../src/index.js';
import { FenceWorld, FRESHER, guardSql } from '../support/fence-world.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('the row that the guard names in a refusal', () => {
  const world = new FenceWorld('fence_refusal', 'allow', ['Tag']);
  beforeAll(async () => {
    await world.admin.query(`
      ALTER TABLE people."Tag" ALTER id TYPE bigint;
      CREATE TABLE people.bill (id bigint, amount numeric, ratio float8, text text, fence bigint NOT NULL,
        PRIMARY KEY (id, amount, ratio, text));
      ${guardSql('people.bill', 'fence', 'allow')}
      GRANT ALL ON people.bill TO PUBLIC;
      -- The application has no right on the partitions by their own names.
      DROP TABLE depot."office furniture" CASCADE;
      CREATE TABLE depot."office furniture" (desk_id int PRIMARY KEY, "desk name" text, desk_value int,
        desk_fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (desk_id);
      CREATE TABLE depot.low PARTITION OF depot."office furniture" FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (desk_id);
      CREATE TABLE depot.lowest PARTITION OF depot.low FOR VALUES FROM (0) TO (10);
      ${guardSql('depot."office furniture"', 'desk_fence', 'allow')}
      GRANT ALL ON depot."office furniture" TO PUBLIC;
      -- Postgres lets such a table have no primary key without its partition key.
      CREATE TABLE people.event (id int NOT NULL, day int NOT NULL, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (day);
      CREATE TABLE people.early (fence bigint NOT NULL DEFAULT 0, day int NOT NULL, id int PRIMARY KEY);
      ALTER TABLE people.event ATTACH PARTITION people.early FOR VALUES FROM (0) TO (10);
      ${guardSql('people.event', 'fence', 'allow')}
      GRANT SELECT (id), DELETE ON people.event TO PUBLIC`);
  });

  // Each with digits that a `number` cannot keep, or with text that looks like them.
  test.each<[string, { id: string; amount: string; ratio?: string; text?: string }, object]>([
    ['a wide id', { id: '-9007199254740993', amount: '-1.5' }, { id: '-9007199254740993', amount: -1.5 }],
    [
      'an exact fraction',
      { id: '1', amount: '1234567890123456.70', ratio: '0.1' },
      { id: 1, amount: '1234567890123456.70', ratio: 0.1 },
    ],
    ['quotes in a text', { id: '2', amount: '1', text: '\\", "id": 9007199254740993, "\\\\"' }, {}],
  ])('is that row: %s', async (name, { id, amount, ratio = '0', text = name }, where) => {
    await world.overriding((session) =>
      session.query('INSERT INTO people.bill VALUES ($1, $2, $3, $4, $5)', [id, amount, ratio, text, FRESHER]),
    );
    const error = await world
      .client()
      .$withLock(`bill:${name}`, (tx) => tx.$executeRaw`DELETE FROM people.bill WHERE text = ${text}`)
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error).toMatchObject({ model: 'bill', fence: FRESHER, where: { text, ...where } });
  });

  test('is that of its model, where it is in a partition of a partition', async () => {
    await world.overriding((session) =>
      session.query('INSERT INTO depot."office furniture" VALUES (7, \'high\', 1, $1)', [FRESHER]),
    );
    const error = await world
      .client()
      .$withLock('desk:7', (tx) => tx.desk.update({ where: { id: 7 }, data: { value: 2 } }))
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error).toMatchObject({ model: 'Desk', fence: FRESHER, where: { id: 7 } });
  });

  test('is none where a TRUNCATE cannot see all rows, which is said, and not tried again', async () => {
    let runs = 0;
    const error = await world
      .client()
      .$withLock(
        'bill:all',
        async (tx) => {
          runs++;
          await tx.$executeRaw`TRUNCATE people.bill`;
        },
        { isolationLevel: 'RepeatableRead', retries: 2 },
      )
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error).toMatchObject({ reason: 'hidden-rows', model: 'bill', fence: undefined, where: undefined });
    expect((error as Error).message).toMatch(/^TRUNCATE of bill was refused: .* READ COMMITTED/);
    expect(runs).toBe(1);
  });

  test.each([
    ['by a wide id', 'people."Tag"', ['id', 'name', 'value'], 9007199254740993n],
    ['in a partition', 'depot."office furniture"', ['desk_id', '"desk name"', 'desk_value'], 8n],
  ])(
    'is the row that a retry locks before it draws its token, also %s',
    async (name, table, [key, text, value], id) => {
      const [holder, other] = [world.client(), world.client()];
      await world.admin.query(`INSERT INTO ${table} (${key}, ${text}, ${value}) VALUES ($1, 'retried', 0)`, [id]);
      const isLocked = async () => {
        const { rows } = await world.admin.query(`SELECT FROM ${table} WHERE ${key} = $1 FOR UPDATE SKIP LOCKED`, [id]);
        return rows.length === 0;
      };
      const locked: boolean[] = [];
      const update = `UPDATE ${table} SET ${value} = ${value} + 1 WHERE ${key} = $1`;
      await holder.$withLock(
        `row:${name}`,
        async (tx) => {
          locked.push(await isLocked());
          if (locked.length === 1) {
            const write = other.$withLock(`other:${name}`, (late) => late.$executeRawUnsafe(update, id), {
              nested: 'allow',
            });
            await write;
          }
          await tx.$executeRawUnsafe(update, id);
        },
        { retries: 1 },
      );
      expect(locked).toEqual([false, true]);
    },
  );
});
