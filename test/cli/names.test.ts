import { describe, expect, inject, test } from 'vitest';
import { readModels } from '../../src/cli/project/schema.js';
import { project } from './project.js';
import { schemaEngine } from './schema-engine.js';

const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';

/** The tables that Prisma makes for a schema, with their columns. */
async function prismaTables(content: string): Promise<Array<[table: string, columns: string[]]>> {
  const engine = await schemaEngine(inject('postgres').admin, { files: [{ path: 'schema.prisma', content }] });
  try {
    const script = await engine.fromNothing();
    return [...script.matchAll(/^CREATE TABLE "([^"]+)" \(\n([^;]*)\);$/gm)].map(([, table = '', body = '']) => [
      table,
      [...body.matchAll(/^ {4}"([^"]+)" /gm)].map(([, column = '']) => column),
    ]);
  } finally {
    await engine.close();
  }
}

const ourTables = (content: string) =>
  readModels(new Map([['schema.prisma', content]])).map(({ table, fields }) => [
    table.name,
    fields.map(({ column }) => column),
  ]);

describe('the models of a schema', () => {
  test.each([
    ['with letters of other languages', 'model Münze {\n  id Int @id\n  größe Int\n}\nmodel 库存 {\n  é Int @id\n}\n'],
    ['with letters beyond the first plane', 'model 𝒜 {\n  id Int @id\n  𝒷 Int\n}\n'],
    ['behind a brace', 'model A {\n  id Int @id\n} model B {\n  id Int @id\n}model C {\n  id Int @id\n}\n'],
    ['behind an enum', 'enum E {\n  model\n  view\n} model A {\n  id Int @id\n}\n'],
    ['behind spaces of all kinds', '\u00A0model\u2003A\u00A0{\n\u00A0id\u00A0Int @id\n  b\u2003Int\n}\n'],
    ['called like a keyword', 'model model {\n  id Int @id\n  model Int\n  view view\n}\nenum view {\n  model\n}\n'],
    ['in a table whose name has escape sequences', 'model A {\n  id Int @id\n  @@map("f\\u00fcnf\\n\\\\\\/\\t")\n}\n'],
    [
      'with spaces in their attributes',
      'model A {\n  id Int @id @ map ( "b" )\n  @@ map ( name : "a" )\n}\nmodel B {\n  id Int @id @map ("c")\n  @@map\t("d")\n}\n',
    ],
  ])('%s are read as Prisma reads them', async (_, models) => {
    expect(ourTables(models)).toEqual(await prismaTables(DATASOURCE + models));
  });

  test.each([
    ['a block that no line ends', 'model A { id Int @id }\n', 'The model A cannot be read: `npx prisma validate`'],
    [
      'a block that is not closed',
      'model B {\n  id Int @id\n} model A-1 {\n  id Int @id',
      'The model A-1 cannot be read',
    ],
    ['an escape sequence that Prisma does not have', 'model A {\n  id Int @id\n  @@map("a\\$")\n}\n', 'a\\$'],
  ])('are not passed over where they cannot be read: %s', async (_, models, message) => {
    const here = project({ 'prisma/schema.prisma': DATASOURCE + models });
    expect(await here.run('sql')).toMatchObject({ code: 1, err: expect.stringContaining(message) });
  });
});
