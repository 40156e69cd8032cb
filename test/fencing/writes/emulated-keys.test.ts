import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { afterAll, expect, inject, test } from 'vitest';
import { fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../generated/fence/client.js';
import { type FenceTx, FenceWorld } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';

describeWithShop('a client with `relationMode = "prisma"`, which looks rows up and writes them by id', () => {
  const world = new FenceWorld('fence_emulated_keys', undefined, []);
  const closing: Array<() => unknown> = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  /** As one that was generated from a schema with this setting. */
  function emulating() {
    const statements: string[] = [];
    const adapter = new PrismaPg({ connectionString: world.url });
    const plain = new PrismaClient({ adapter, log: [{ emit: 'event', level: 'query' }] });
    plain.$on('query', ({ query }) => statements.push(query));
    const { _engine, _engineConfig } = plain as unknown as {
      _engine: { datamodel: string };
      _engineConfig: { inlineSchema: string };
    };
    _engineConfig.inlineSchema = _engineConfig.inlineSchema.replace(
      /provider\s*=\s*"postgresql"/,
      '$&\n  relationMode = "prisma"',
    );
    _engine.datamodel = _engineConfig.inlineSchema;
    const redis = new Redis(inject('redis').url ?? '');
    closing.push(
      () => plain.$disconnect(),
      () => redis.disconnect(),
    );
    return { statements, plain, prisma: plain.$extends(fencedLock({ redis })) };
  }

  const WRITES: Record<string, (tx: FenceTx, id: number) => PromiseLike<unknown>> = {
    update: (tx, id) => tx.member.update({ where: { id }, data: { value: 9 } }),
    updateMany: (tx, id) => tx.member.updateMany({ where: { id }, data: { value: 9 } }),
    updateManyAndReturn: (tx, id) => tx.member.updateManyAndReturn({ where: { id }, data: { value: 9 } }),
    upsert: (tx, id) =>
      tx.member.upsert({ where: { id }, update: { value: 9 }, create: { name: 'made anew', value: 9 } }),
    delete: (tx, id) => tx.member.delete({ where: { id } }),
    deleteMany: (tx, id) => tx.member.deleteMany({ where: { id } }),
  };

  test('does so (control)', async () => {
    const { plain, statements } = emulating();
    const { id } = await plain.member.create({ data: { name: 'looked up', value: 1 } });
    statements.splice(0);
    await plain.member.updateMany({ where: { id, fence: { lte: 5 } }, data: { id: id + 1_000_000 } });
    const update = statements.find((text) => text.startsWith('UPDATE "people"."Member"'));
    expect(statements.some((text) => text.startsWith('SELECT'))).toBe(true);
    expect(update).not.toContain('"fence" <=');
  });

  test.each(Object.entries(WRITES))(
    'may not write a model without a guard that has relations: %s',
    async (name, write) => {
      const { plain, prisma } = emulating();
      const { id } = await plain.member.create({ data: { name, value: 1 } });
      const refused = prisma.$withLock(`member:${id}`, async (tx) => await write(tx as FenceTx, id));
      const message = expect.stringMatching(/^`Member\.\w+` cannot be made safe: .* add-fence Member/);
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION', message });
      expect(await plain.member.findUnique({ where: { id } })).toMatchObject({ value: 1 });
    },
  );
});
