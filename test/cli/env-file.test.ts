import { execFile } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { project, ROOT } from './project.js';

const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const CONFIG = (url: string) => `import 'dotenv/config';
export default { schema: 'schema.prisma'${url} };
`;
const DATASOURCE = `, datasource: { url: process.env['DIRECT_URL'] }`;
const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n';
/** Nothing listens there. */
const NOWHERE = { database: 'postgresql://nobody@127.0.0.1:1/nowhere', redis: 'redis://127.0.0.1:1' };

describeWithShop('the URLs in the .env that the Prisma config loads', () => {
  const database = () => inject('postgres').app;
  const redis = () => inject('redis').url ?? '';

  /** Runs a command in a process of its own: dotenv writes into the environment of the process. */
  async function run(dotenv: Record<string, string>, env: Record<string, string>, args: string[], config = CONFIG('')) {
    const here = project({
      'package.json': '{ "type": "module" }',
      'prisma.config.ts': config,
      'schema.prisma': SCHEMA,
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

  test.each<[what: string, env: (url: string) => Record<string, string>, args: (url: string) => string[]]>([
    ['alone', () => ({}), () => []],
    ['and the database in the environment', (url) => ({ DATABASE_URL: url }), () => []],
    ['and the database as an option', () => ({}), (url) => ['--database-url', url]],
  ])(
    'are found: %s',
    async (_, env, args) => {
      const dotenv = { DATABASE_URL: database(), REDIS_URL: redis() };
      for (const command of [['ls'], ['unlock', 'stock:1', '--dry-run']]) {
        const said = await run(dotenv, env(database()), [...command, ...args(database())]);
        expect(said).toMatchObject({
          ok: true,
          project: { config: 'prisma.config.ts' },
          servers: { redis: { address: new URL(redis()).host, from: 'the Prisma config' } },
        });
      }
    },
    60_000,
  );

  test('the datasource of the config comes before its DATABASE_URL, and behind that of the environment', async () => {
    const dotenv = { DATABASE_URL: NOWHERE.database, DIRECT_URL: database(), REDIS_URL: redis() };
    expect(await run(dotenv, {}, ['ls'], CONFIG(DATASOURCE))).toMatchObject({ ok: true });
    const given = { DATABASE_URL: NOWHERE.database };
    expect(await run(dotenv, given, ['ls'], CONFIG(DATASOURCE))).toMatchObject({
      ok: false,
      error: expect.stringContaining('nobody@127.0.0.1:1/nowhere cannot be reached'),
    });
  }, 60_000);
});
