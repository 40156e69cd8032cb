import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { type Project, project, ROOT } from './project.js';

const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';
const SCHEMA = `${DATASOURCE}\nmodel Stock {\n  id Int @id\n}\n`;
const config = (folder: string) => `import { defineConfig } from 'prisma/config';
export default defineConfig({
  schema: '${folder}/schema.prisma', migrations: { path: '${folder}/history' }, datasource: { url: '' },
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
  const err = 'The datasource in prisma/schema.prisma is mysql, and these locks need PostgreSQL';
  expect(await foreign.run(command)).toMatchObject({ code: 1, err: expect.stringContaining(err) });
});

describe('where the project is', () => {
  const both = { 'schema.prisma': SCHEMA, 'prisma/schema.prisma': SCHEMA };
  const named = {
    'prisma/schema.prisma': SCHEMA,
    'db/own.config.ts': 'export default {};\n',
    'db/schema.prisma': SCHEMA,
  };
  test.each<[string, Record<string, string>, string[], string]>([
    ['prisma/schema.prisma', { 'prisma/schema.prisma': SCHEMA }, [], 'prisma/migrations'],
    ['schema.prisma before prisma/schema.prisma, as Prisma takes them', both, [], 'migrations'],
    ['a folder, beside its datasource', { 'prisma/schema': 'fixture:bookshop' }, [], 'prisma/schema/migrations'],
    ['--schema, whatever else there is', named, ['--schema', 'db/schema.prisma'], 'db/migrations'],
    ['--config, and beside it what it does not name', named, ['--config', 'db/own.config.ts'], 'db/migrations'],
  ])('%s', async (_, files, args, migrations) => {
    const somewhere = project(files);
    const ran = await withPrisma(somewhere, () => somewhere.run('init', ...args));
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(somewhere.migration(migrations).sql).toContain('CREATE SCHEMA');
  });

  test.each([
    ['prisma7.config.ts'],
    ['.config/prisma.ts'],
    // The first of them wins, as in Prisma.
    ['prisma7.config.ts', 'prisma.config.ts'],
    ['prisma.config.ts', '.config/prisma.ts'],
  ])('%s, whose paths are seen from where it is', async (file, other?: string) => {
    const somewhere = project({ 'package.json': '{ "type": "module" }', [file]: config('wanted') });
    if (other !== undefined) somewhere.write(other, config('unwanted'));
    const below = dirname(file);
    for (const folder of ['wanted', 'unwanted']) somewhere.write(join(below, folder, 'schema.prisma'), SCHEMA);
    const [schema, migrations] = [join(below, 'wanted/schema.prisma'), join(below, 'wanted/history')];
    const told = await withPrisma(somewhere, () => somewhere.run('init', '--json'));
    expect(told).toMatchObject({ code: 0, json: { project: { config: file, schema, migrations } } });
    expect(somewhere.migration(migrations).sql).toContain('CREATE SCHEMA');
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

describeWithShop('the URLs in the .env that the Prisma config loads', () => {
  const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const CONFIG = (url: string) => `import 'dotenv/config';\nexport default { schema: 'schema.prisma'${url} };\n`;
  const NOWHERE = 'postgresql://nobody@127.0.0.1:1/nowhere';
  const database = () => inject('postgres').app;
  const redis = () => inject('redis').url ?? '';

  /** Runs a command in a process of its own: dotenv writes into the environment of the process. */
  async function run(dotenv: Record<string, string>, env: Record<string, string>, args: string[], url = '') {
    const here = project({
      'package.json': '{ "type": "module" }',
      'prisma.config.ts': CONFIG(url),
      'schema.prisma': DATASOURCE,
      '.env': Object.entries(dotenv)
        .map(([name, value]) => `${name}="${value}"\n`)
        .join(''),
    });
    symlinkSync(join(ROOT, 'node_modules'), here.path('node_modules'));
    const { PATH, HOME } = process.env;
    const options = { cwd: here.folder, env: { PATH, HOME, TSX_DISABLE_CACHE: '1', ...env }, timeout: 60_000 };
    const command = ['--import', TSX, join(ROOT, 'src/cli/main.ts'), ...args, '--json'];
    const out = await new Promise<string>((resolve) => {
      execFile(process.execPath, command, options, (_, stdout) => resolve(stdout));
    });
    return JSON.parse(out) as Record<string, unknown>;
  }

  test.each<[what: string, env: () => Record<string, string>, args: () => string[]]>([
    ['alone', () => ({}), () => ['ls']],
    ['and the database in the environment', () => ({ DATABASE_URL: database() }), () => ['ls']],
    ['and the database as an option', () => ({}), () => ['unlock', 'k', '--dry-run', '--database-url', database()]],
  ])(
    'are found: %s',
    async (_, env, args) => {
      const said = await run({ DATABASE_URL: database(), REDIS_URL: redis() }, env(), args());
      const servers = { redis: { address: new URL(redis()).host, from: 'the Prisma config' } };
      expect(said).toMatchObject({ ok: true, project: { config: 'prisma.config.ts' }, servers });
    },
    60_000,
  );

  test('the datasource of the config comes before its DATABASE_URL, and behind that of the environment', async () => {
    const dotenv = { DATABASE_URL: NOWHERE, DIRECT_URL: database(), REDIS_URL: redis() };
    const datasource = `, datasource: { url: process.env['DIRECT_URL'] }`;
    expect(await run(dotenv, {}, ['ls'], datasource)).toMatchObject({ ok: true });
    const error = expect.stringContaining('nobody@127.0.0.1:1/nowhere cannot be reached');
    expect(await run(dotenv, { DATABASE_URL: NOWHERE }, ['ls'], datasource)).toMatchObject({ ok: false, error });
  }, 60_000);
});
