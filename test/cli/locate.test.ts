import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Project, project, ROOT } from './project.js';

const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Stock {\n  id Int @id\n}\n';
const config = (folder: string, url = '') => `import { defineConfig } from 'prisma/config';
export default defineConfig({
  schema: '${folder}/schema.prisma', migrations: { path: '${folder}/history' }, datasource: { url: '${url}' },
});\n`;

/** Links what the tests have installed into a project, while something runs in it. */
async function withInstalled<T>(somewhere: Project, links: Record<string, string>, work: () => Promise<T>): Promise<T> {
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(dirname(somewhere.path(path)), { recursive: true });
    symlinkSync(join(ROOT, target), somewhere.path(path));
  }
  try {
    return await work();
  } finally {
    for (const path of Object.keys(links)) rmSync(somewhere.path(path));
  }
}
const withPrisma = <T>(somewhere: Project, work: () => Promise<T>) =>
  withInstalled(somewhere, { node_modules: 'node_modules' }, work);

test.each(['init', 'sql'])('%s refuses a schema whose database is not PostgreSQL', async (command) => {
  const foreign = project({ 'prisma/schema.prisma': SCHEMA.replace('postgresql', 'mysql') });
  const before = foreign.files();
  const err =
    'The datasource in prisma/schema.prisma is mysql, and these locks need PostgreSQL: provider = "postgresql".';
  expect(await foreign.run(command)).toMatchObject({ code: 1, err: expect.stringContaining(err) });
  expect(foreign.files()).toEqual(before);
});

describe('where the project is', () => {
  test.each<[string, Record<string, string>, string[], string]>([
    ['prisma/schema.prisma', { 'prisma/schema.prisma': SCHEMA }, [], 'prisma/migrations'],
    ['schema.prisma', { 'schema.prisma': SCHEMA }, [], 'migrations'],
    [
      'schema.prisma before prisma/schema.prisma, as Prisma takes them',
      { 'schema.prisma': SCHEMA, 'prisma/schema.prisma': SCHEMA },
      [],
      'migrations',
    ],
    ['a folder, beside its datasource', { 'prisma/schema': 'fixture:bookshop' }, [], 'prisma/schema/migrations'],
    [
      '--schema, whatever else there is',
      { 'prisma/schema.prisma': SCHEMA, 'db/main.prisma': SCHEMA },
      ['--schema', 'db/main.prisma'],
      'db/migrations',
    ],
    [
      '--config, and beside it what it does not name',
      { 'prisma/schema.prisma': SCHEMA, 'db/own.config.ts': 'export default {};\n', 'db/schema.prisma': SCHEMA },
      ['--config', 'db/own.config.ts'],
      'db/migrations',
    ],
  ])('%s', async (_, files, args, migrations) => {
    const somewhere = project(files);
    const ran = await withPrisma(somewhere, () => somewhere.run('init', ...args));
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(somewhere.migration(migrations).sql).toContain('CREATE SCHEMA');
  });

  test.each([
    ['prisma7.config.ts'],
    ['.config/prisma7.ts'],
    ['prisma.config.ts'],
    ['.config/prisma.ts'],
    // The first of them wins, as in Prisma.
    ['prisma7.config.ts', 'prisma.config.ts'],
    ['prisma7.config.ts', '.config/prisma7.ts'],
    ['prisma.config.ts', '.config/prisma.ts'],
  ])('%s, whose paths are seen from where it is', async (file, other?: string) => {
    const somewhere = project({ 'package.json': '{ "type": "module" }', [file]: config('wanted') });
    if (other !== undefined) somewhere.write(other, config('unwanted'));
    const below = dirname(file);
    for (const folder of ['wanted', 'unwanted']) somewhere.write(join(below, folder, 'schema.prisma'), SCHEMA);
    if (other !== undefined) somewhere.write(join(dirname(other), 'unwanted/schema.prisma'), SCHEMA);
    const found = {
      config: file,
      schema: join(below, 'wanted/schema.prisma'),
      migrations: join(below, 'wanted/history'),
    };
    const told = await withPrisma(somewhere, () => somewhere.run('init', '--json'));
    expect(told).toMatchObject({ code: 0, json: { project: found } });
    expect(somewhere.migration(found.migrations).sql).toContain('CREATE SCHEMA');
    const again = await withPrisma(somewhere, () => somewhere.run('add-fence', 'Stock', '--dry-run'));
    expect(again.out).toContain(
      `config     ${found.config}\nschema     ${found.schema}\nmigrations ${found.migrations}\n`,
    );
  });

  test('beside Prisma 8 the config is read by @prisma/prisma7', async () => {
    const somewhere = project({
      'prisma7.config.ts': 'export default { schema: "db/schema.prisma", migrations: { path: "db/history" } };\n',
      'db/schema.prisma': SCHEMA,
      'node_modules/prisma/package.json': '{ "version": "8.0.0" }',
    });
    expect(await somewhere.run('init')).toMatchObject({
      code: 1,
      err: expect.stringContaining('prisma7.config.ts can be read only with Prisma 7 installed'),
    });
    somewhere.write('node_modules/@prisma/prisma7/package.json', '{ "version": "7.10.0" }');
    const links = { 'node_modules/@prisma/prisma7/node_modules/prisma': 'node_modules/prisma' };
    expect(await withInstalled(somewhere, links, () => somewhere.run('init', '--json'))).toMatchObject({
      code: 0,
      json: { project: { config: 'prisma7.config.ts', migrations: 'db/history' } },
    });
  });
});
