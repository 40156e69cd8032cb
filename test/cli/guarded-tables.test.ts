import { describe, expect, test } from 'vitest';
import { project } from './project.js';

const schema = (attributes = '') => `datasource db {
  provider = "postgresql"
}

model Stock {
  id Int @id
  fence BigInt @default(0)
${attributes}}
`;
const CREATE = 'CREATE TABLE "Stock" (id int PRIMARY KEY);';

/** A project whose table has a guard that refuses writers without a token. */
async function guarded() {
  const here = project({
    'prisma/schema.prisma': schema(),
    'prisma/migrations/20260101000000_tables/migration.sql': CREATE,
  });
  await here.run('init');
  expect(await here.run('add-fence', 'Stock', '--guard', 'require')).toMatchObject({ code: 0 });
  const later = (sql: string) => here.write('prisma/migrations/20270101000000_later/migration.sql', sql);
  return { here, later };
}

describe('the guard of a table, by the migrations', () => {
  test.each([
    ['its model names the default schema', '-- nothing', '  @@schema("public")\n'],
    ['it has another name', 'ALTER TABLE "Stock" RENAME TO "goods";', '  @@map("goods")\n'],
    [
      'it has another name, and a plain one',
      'alter table if exists "public"."Stock" rename to Goods',
      '  @@map("goods")\n',
    ],
    ['it is in another schema', 'ALTER TABLE "Stock" SET SCHEMA shop;', '  @@schema("shop")\n'],
    [
      'it is in another schema, under another name',
      'ALTER TABLE "Stock" SET SCHEMA shop;\nALTER TABLE shop."Stock" RENAME TO "goods";',
      '  @@schema("shop")\n  @@map("goods")\n',
    ],
    ['a column of it has another name', 'ALTER TABLE "Stock" RENAME COLUMN name TO title;', ''],
  ])('is still there where %s', async (_, sql, attributes) => {
    const { here, later } = await guarded();
    later(sql);
    here.write('prisma/schema.prisma', schema(attributes));
    const again = await here.run('add-fence', 'Stock');
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('the fence and the guard are there already') });
    expect((await here.run('sql')).out).toContain(`fenced_lock.guard('fence', 'require')`);
  });

  test.each([
    ['the table was made anew', `DROP TABLE "Stock";\n${CREATE}`, ''],
    ['it was dropped among others', 'DROP TABLE IF EXISTS "Other", "public"."Stock" CASCADE;', ''],
    ['another table got its name', 'ALTER TABLE "Stock" RENAME TO "old";\nCREATE TABLE "Stock" (id int);', ''],
    ['its model is of another schema', '-- nothing', '  @@schema("shop")\n'],
  ])('is gone where %s', async (_, sql, attributes) => {
    const { here, later } = await guarded();
    later(sql);
    here.write('prisma/schema.prisma', schema(attributes));
    const again = await here.run('add-fence', 'Stock');
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringContaining('Stock has no guard yet, and gets one (allow)'),
    });
  });
});
