import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Project, project } from './project.js';

const FOLDER = 'prisma/schema';
const FENCEABLE = ['User', 'Address', 'Session', 'Order', 'OrderLine', 'Payment', 'Book', 'Stock', 'Genre', 'Review'];
async function bookshop(): Promise<Project> {
  const bookshop = project({ [FOLDER]: 'fixture:bookshop' });
  await bookshop.run('init');
  return bookshop;
}

/** A project of one model, in prisma/schema.prisma. */
async function one(text: string): Promise<Project> {
  const single = project({ 'prisma/schema.prisma': text });
  await single.run('init');
  return single;
}

describe('add-fence in the schema', () => {
  test('any models at once, in any order, get their line and no other does; remove-fence restores every byte', async () => {
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(FENCEABLE, { minLength: 1 }), async (models) => {
        const shop = new Project({ [FOLDER]: 'fixture:bookshop' });
        try {
          await shop.run('init');
          const before = shop.files();
          await shop.run('add-fence', ...models);
          const after = shop.files();
          const lines = Object.values(after).flatMap(
            (text) => text.match(/^\s+fence BigInt @default\(0\)\r?\n/gm) ?? [],
          );
          expect(lines).toHaveLength(models.length);
          await shop.run('remove-fence', ...models.toReversed());
          expect(shop.files()).toMatchObject(before);
        } finally {
          shop.remove();
        }
      }),
      { numRuns: 25 },
    );
  });

  test('a model that has the field gets the guard alone, under the name of its column', async () => {
    const shop = await bookshop();
    const { json } = await shop.run('add-fence', 'Shelf', '--json');
    expect(json['files']).toMatchObject([{ change: 'new' }]);
    const { sql } = shop.migration(`${FOLDER}/migrations`);
    expect(sql).toContain(
      `ON "public"."Shelf"\n    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('last_token', 'allow');`,
    );
    // The column is somebody else's, and the guard needs it: it is made where it is not there.
    expect(sql.match(/ADD COLUMN.*$/gm)).toEqual(['ADD COLUMN IF NOT EXISTS "last_token" BIGINT NOT NULL DEFAULT 0;']);
  });

  test('a file with CRLF keeps it, in the new line as well', async () => {
    const model = (fence: string) => `model A {\r\n  id   Int @id // the key\r\n  name String\r\n${fence}}\r\n`;
    const windows = await one(model(''));
    await windows.run('add-fence', 'A');
    expect(windows.read('prisma/schema.prisma')).toBe(model('  fence BigInt @default(0)\r\n'));
    await windows.run('remove-fence', 'A');
    expect(windows.read('prisma/schema.prisma')).toBe(model(''));
  });

  test('a model in a comment, or braces in a string, lead nobody astray', async () => {
    const model = (fence: string) =>
      `// model A {\n/* model A {\n  id Int @id } */\nmodel A {\n  id   Int    @id\n  text String @default("} // { /*") /// model A {\n${fence}  // } not yet\n}\n`;
    const tricky = await one(model(''));
    await tricky.run('add-fence', 'A');
    expect(tricky.read('prisma/schema.prisma')).toBe(model('  fence BigInt @default(0)\n'));
  });

  test('the name of --field is used for the field, the column, the guard and the omit line; remove-fence knows it', async () => {
    const shop = await bookshop();
    const before = shop.read(`${FOLDER}/stock.prisma`);
    const { json } = await shop.run('add-fence', 'Till', 'OrderLine', '--field', 'token', '--json');
    expect(json['omit']).toBe('omit: { orderLine: { token: true }, till: { token: true } }');
    expect(shop.read(`${FOLDER}/stock.prisma`)).toContain('  fence Int @default(0)\n  token BigInt @default(0)\n');
    expect(shop.migration(`${FOLDER}/migrations`).sql).toContain(`fenced_lock.guard('token', 'allow')`);
    expect(await shop.run('remove-fence', 'Till')).toMatchObject({ code: 0, err: '' });
    expect(shop.read(`${FOLDER}/stock.prisma`)).toBe(before);
    expect(shop.migration(`${FOLDER}/migrations`).sql).toContain('DROP COLUMN "token"');
  });
});

describe('what cannot be done is said in a plain sentence, and nothing is written', () => {
  const cases: Array<[string, string[], RegExp]> = [
    ['an unknown model', ['add-fence', 'Stock', 'Invoice'], /no model Invoice .* It has User, Address,/],
    ['a view', ['add-fence', 'BestSeller'], /no model BestSeller/],
    [
      'a field of the wrong type',
      ['add-fence', 'Stock', 'Till'],
      /Till has a field `fence` that is not a fence: it is `Int @/,
    ],
    ['a column that another field has', ['add-fence', 'Shelf', '--field', 'last_token'], /"last_token" of model Shelf/],
    [
      'a schema that is not there',
      ['add-fence', 'Stock', '--schema', 'elsewhere.prisma'],
      /no Prisma schema at elsewhere/,
    ],
    ['a folder without a schema', ['add-fence', 'Stock', '--schema', 'prisma/schema/migrations'], /no \.prisma file/],
  ];

  test.each(cases)('%s', async (_, args, sentence) => {
    const shop = await bookshop();
    const before = shop.files();
    const { code, out, err } = await shop.run(...args);
    expect(err).toMatch(sentence);
    expect(err).toMatch(/^fenced-lock: [^\n]+[.?]\n$/);
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringMatching(/^(config .*\nschema .*\nmigrations .*\n)?$/),
    });
    expect(shop.files()).toEqual(before);
  });

  test('a fence that an index uses is not removed', async () => {
    const text = 'model A {\n  id Int @id\n  fence BigInt @default(0)\n\n  @@index([id, fence])\n}\n';
    const indexed = await one(text);
    expect(await indexed.run('remove-fence', 'A')).toMatchObject({
      code: 1,
      err: expect.stringContaining('is used by @@index([id, fence])'),
    });
  });
});
