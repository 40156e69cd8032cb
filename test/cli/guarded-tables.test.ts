import { describe, expect, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase } from './database.js';
import { findings } from './patient.js';
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

/** The migrations of a project, and what doctor finds of the guards. */
function on({ url }: { readonly url: string }, here: ReturnType<typeof project>) {
  return {
    deploy: () => applyMigrations(url, { dir: here.path('prisma/migrations') }),
    guards: async () =>
      findings(await here.run('doctor', '--json', '--database-url', url)).filter(({ check }) => check === 'guards'),
  };
}

describe('the guard of a table, by the migrations', () => {
  test.each([
    ['its model names the default schema', '-- nothing', '  @@schema("public")\n'],
    ['it has another name', 'ALTER TABLE "Stock" RENAME TO "goods";', '  @@map("goods")\n'],
    ['it is in another schema', 'ALTER TABLE "Stock" SET SCHEMA shop;', '  @@schema("shop")\n'],
    ['a column of it has another name', 'ALTER TABLE "Stock" RENAME COLUMN name TO title;', ''],
    ['only the table itself has another name', 'ALTER TABLE ONLY "Stock" RENAME TO "goods";', '  @@map("goods")\n'],
    ['a comment names what would drop it', '-- To go back: DROP TABLE "Stock";\n/* DROP TABLE "Stock" */', ''],
    ['a text names it', `COMMENT ON COLUMN "Stock".id IS 'drop table "Stock" resets it'`, ''],
    ['a function would do it', 'CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $f$ DROP TABLE "Stock" $f$;', ''],
  ])('is still there where %s', async (_, sql, attributes) => {
    const { here, later } = await guarded();
    later(sql);
    here.write('prisma/schema.prisma', schema(attributes));
    const again = await here.run('add-fence', 'Stock');
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('the fence and the guard are there already') });
    expect((await here.run('sql')).out).toContain(`fenced_lock.guard('fence', 'require')`);
  });

  test.each([
    ['the table was made anew', `DROP TABLE IF EXISTS "Other", "public"."Stock" CASCADE;\n${CREATE}`, ''],
    ['another table got its name', `ALTER TABLE "Stock" RENAME TO "old";\n${CREATE}`, ''],
    // Prisma writes another name of a model as a new table.
    [
      'its model got another name',
      'DROP TABLE "Stock";\nCREATE TABLE "Article" (id int PRIMARY KEY, "fence" BIGINT NOT NULL DEFAULT 0);',
      '  @@map("Article")\n',
    ],
  ])(
    'is lost where %s: doctor misses it, and add-fence makes it again, with its policy',
    async (_, sql, attributes) => {
      const { here, later } = await guarded();
      later(sql);
      here.write('prisma/schema.prisma', schema(attributes));
      await using database = await createDatabase();
      const { deploy, guards } = on(database, here);
      await deploy();
      expect(await guards()).toMatchObject([
        { status: 'fault', message: expect.stringContaining('the guard is missing') },
      ]);
      expect(await here.run('add-fence', 'Stock')).toMatchObject({ code: 0 });
      await deploy();
      expect(await guards()).toMatchObject([{ status: 'ok', message: expect.stringContaining('guarded (require)') }]);
    },
  );

  test('is none where the model is of another schema', async () => {
    const { here } = await guarded();
    here.write('prisma/schema.prisma', schema('  @@schema("shop")\n'));
    expect((await here.run('add-fence', 'Stock')).out).toContain('Stock has no guard yet, and gets one (allow)');
  });
});
