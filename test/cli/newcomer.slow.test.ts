import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-suite.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { Project, ROOT } from './project.js';
import { readMigrations, readSchema, schemaEngine } from './schema-engine.js';

const run = promisify(execFile);
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const theirs = (what: RegExp) => what.exec(README)?.[1] ?? '';
const MODEL = theirs(/^```prisma\n([\s\S]*?)^```/m);
const REDIS_LINE = theirs(/^ *(printf .*REDIS_URL.*)$/m);
const USE = theirs(/^## Use[\s\S]*?^```ts\n([\s\S]*?)^```/m);
const ROW = theirs(/^echo '(INSERT .*)' \|/m);
const FENCE = theirs(/^## Do you need a fence\?[\s\S]*?^npx fenced-lock (.*)$/m);
const PROGRAM = theirs(/^```ts\n([\s\S]*?)^```/m);
const END = 'await prisma.$disconnect();\nredis.disconnect();\n';

describeWithRedis('who begins with `prisma init` of this Prisma', (redis) => {
  let database: OwnDatabase;
  let project: Project;

  beforeAll(async () => {
    database = await createDatabase();
    project = new Project({ 'package.json': '{ "name": "newcomer", "type": "module" }\n' });
    symlinkSync(join(ROOT, 'node_modules'), project.path('node_modules'));
  });
  afterAll(async () => {
    project?.remove();
    await database?.[Symbol.asyncDispose]();
  });

  /** A process in the new folder. Its environment names the database, as the .env that Prisma writes would. */
  async function node(...args: string[]): Promise<string> {
    const env = {
      PATH: process.env['PATH'],
      DATABASE_URL: database.url,
      // Prisma downloads an engine for its every command, which those that are run here do not need.
      PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
      TSX_DISABLE_CACHE: '1',
    };
    return (await run(process.execPath, args, { cwd: project.folder, env })).stdout;
  }
  const prisma = (...args: string[]) => node(join(ROOT, 'node_modules/prisma/build/index.js'), ...args);
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const fencedLock = (...args: string[]) => node('--import', tsx, join(ROOT, 'src/cli/main.ts'), ...args);

  test('gets to the first $withLock by the commands and the program of the README, and from there to a fence', async () => {
    await prisma('init', '--no-skills', '--url', 'postgresql://not.the.one/at-all');
    expect(project.read('prisma7.config.ts')).toContain('defineConfig');
    const url = redis().url ?? '';
    expect(REDIS_LINE).toContain('redis://localhost:6379');
    await run('/bin/sh', ['-ec', REDIS_LINE.replace('redis://localhost:6379', url)], { cwd: project.folder });
    // A line of its own, though Prisma's last one does not end.
    expect(project.read('.env').split('\n')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^DATABASE_URL="[^"]*"$/), `REDIS_URL=${url}`]),
    );
    project.write('prisma/schema.prisma', `${project.read('prisma/schema.prisma')}\n${MODEL}`);
    // In the place of `prisma migrate dev --name stock`, which needs the engine.
    const engine = async () => schemaEngine(database.url, readSchema(project.path('prisma')));
    const first = await engine();
    project.write('prisma/migrations/20260101000000_stock/migration.sql', await first.fromNothing());
    await first.close();

    const found = { config: 'prisma7.config.ts', schema: 'prisma/schema.prisma', migrations: 'prisma/migrations' };
    expect(JSON.parse(await fencedLock('init', '--json'))).toMatchObject({ ok: true, project: found });
    const deploy = async () => {
      const next = await engine();
      expect((await next.deploy(readMigrations(project.path('prisma/migrations')))).length).toBeGreaterThan(0);
      await next.close();
      await prisma('generate');
      const report = JSON.parse(await fencedLock('doctor', '--json')) as { findings: Record<string, unknown>[] };
      expect(report).toMatchObject({ ok: true, faults: 0, project: found });
      return report.findings;
    };
    expect(await deploy()).toContainEqual(expect.objectContaining({ server: 'redis', check: 'scripts', status: 'ok' }));

    await database.pool.query(ROW);
    const here = PROGRAM.replace('prisma-extension-fenced-lock', pathToFileURL(join(ROOT, 'src/index.ts')).href);
    project.write('shop.ts', here);
    const said = /prints `(.*)`/.exec(README)?.[1];
    expect(said).toMatch(/9/);
    expect(await node('--import', tsx, 'shop.ts')).toContain(`${said}\n`);

    expect(FENCE).toBe('add-fence Stock');
    await fencedLock(...FENCE.split(' '));
    await deploy();
    expect(await node('--import', tsx, 'shop.ts')).toContain('The quantity is 8 now.\n');
    const { rows } = await database.pool.query('SELECT quantity, fence::int FROM "Stock"');
    expect(rows).toEqual([{ quantity: 8, fence: 2 }]);

    expect(here).toContain(END);
    project.write('use.ts', here.replace(END, USE + END));
    expect(await node('--import', tsx, 'use.ts')).toMatch(/^1$/m);
    const after = await database.pool.query('SELECT quantity FROM "Stock"');
    expect(after.rows).toEqual([{ quantity: 0 }]);
    // Some ten commands, each a process of its own.
  }, 120_000);
});
