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

/** A project whose table has a guard that refuses writers without a token, and then another migration. */
async function guarded(later: string, attributes: string) {
  const here = project({ 'prisma/schema.prisma': schema() });
  await here.run('init');
  expect(await here.run('add-fence', 'Stock', '--guard', 'require')).toMatchObject({ code: 0 });
  here.write('prisma/migrations/20270101000000_later/migration.sql', later);
  here.write('prisma/schema.prisma', schema(attributes));
  return here;
}

describe('the guard of a table, by the migrations', () => {
  test.each([
    ['its model names the default schema', '-- nothing', '  @@schema("public")\n'],
    ['it has another name', 'ALTER TABLE "Stock" RENAME TO "goods";', '  @@map("goods")\n'],
    ['it is in another schema', 'ALTER TABLE ONLY "Stock" SET SCHEMA shop;', '  @@schema("shop")\n'],
    ['a column of it has another name', 'ALTER TABLE "Stock" RENAME COLUMN name TO title;', ''],
  ])('is still there where %s', async (_, sql, attributes) => {
    const here = await guarded(sql, attributes);
    const again = await here.run('add-fence', 'Stock');
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('the fence and the guard are there already') });
    expect((await here.run('sql')).out).toContain(`fenced_lock.guard('fence', 'require')`);
  });

  test.each([
    ['the model is of another schema', '-- nothing', '  @@schema("shop")\n'],
    // Prisma writes another name of a model as a new table.
    [
      'the table was made anew under another name',
      'DROP TABLE "Stock"; CREATE TABLE "Article" ();',
      '  @@map("Article")\n',
    ],
  ])('is none where %s', async (_, sql, attributes) => {
    const here = await guarded(sql, attributes);
    expect(await here.run('add-fence', 'Stock')).toMatchObject({ code: 0, out: expect.stringContaining("'allow'") });
  });
});
