import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';
import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { type Prisma, PrismaClient } from '../generated/prisma/client.js';
import { project, ROOT } from './project.js';

test('with the omit line that add-fence prints, a row of a fenced model goes out as JSON', async () => {
  const shop = project({ 'prisma/schema.prisma': readFileSync(join(ROOT, 'prisma/schema.prisma'), 'utf8') });
  await shop.run('init');
  const { out } = await shop.run('add-fence', 'Stock');
  const line = /new PrismaClient\({ adapter, (omit: .*) }\)/.exec(out)?.[1] ?? '';
  const options = vm.runInNewContext(`({ ${line} })`) as { omit: Prisma.GlobalOmitConfig };
  const adapter = new PrismaPg({ connectionString: inject('postgres').app });
  const [plain, omitting] = [new PrismaClient({ adapter }), new PrismaClient({ adapter, ...options })];
  try {
    const product = randomUUID();
    const row = await plain.stock.create({ data: { product, quantity: 1 } });
    expect(() => JSON.stringify(row)).toThrow(/BigInt/);
    expect(JSON.parse(JSON.stringify(await omitting.stock.findUnique({ where: { product } })))).toEqual({
      id: row.id,
      product,
      quantity: 1,
    });
  } finally {
    await plain.$disconnect();
    await omitting.$disconnect();
  }
});
