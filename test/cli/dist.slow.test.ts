import { spawn, spawnSync } from 'node:child_process';
import { closeSync, cpSync, existsSync, openSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { expect, inject, test } from 'vitest';
import { type Project, project, ROOT } from './project.js';

const OBJECTS = 'prisma/migrations/20261101000000_fenced_lock';

/** The package as it is installed, as far as the command needs it: compiled, with what `files` names. */
function installed(): { app: Project; bin: string } {
  const app = project({ 'prisma/schema.prisma': 'model Stock {\n  id Int @id\n}\n' });
  const home = 'node_modules/prisma-extension-fenced-lock';
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  for (const source of sources.filter((path) => path.endsWith('.ts'))) {
    const { outputText } = ts.transpileModule(readFileSync(join(ROOT, 'src', source), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    });
    app.write(`${home}/dist/${source.replace(/ts$/, 'js')}`, outputText);
  }
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  app.write(`${home}/package.json`, text);
  cpSync(join(ROOT, OBJECTS), app.path(home, OBJECTS), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/commander'), app.path('node_modules/commander'));
  symlinkSync(join(ROOT, 'node_modules/diff'), app.path('node_modules/diff'));
  app.write('node_modules/.bin/README', '');
  const { bin } = JSON.parse(text) as { bin: Record<string, string> };
  symlinkSync(
    join('../prisma-extension-fenced-lock', bin['fenced-lock'] ?? ''),
    app.path('node_modules/.bin/fenced-lock'),
  );
  return { app, bin: app.path('node_modules/.bin/fenced-lock') };
}

test('the compiled command works where it is installed, without the drivers of the servers', () => {
  const { app, bin } = installed();
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [bin, ...args], { cwd: app.folder, encoding: 'utf8', env: {} });
  expect(readFileSync(bin, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  expect(run('init')).toMatchObject({ status: 0, stderr: '' });
  expect(app.migration().sql).toBe(readFileSync(join(ROOT, OBJECTS, 'migration.sql'), 'utf8'));
  expect(run('add-fence', 'Stock')).toMatchObject({ status: 0, stderr: '' });
  expect(run('gc', '--database-url', 'postgresql://host/db')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('the driver of PostgreSQL. Install it: npm install pg.'),
  });
  expect(run('mend')).toMatchObject({ status: 2 });
});

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

test('doctor whose reader goes away after the first line, as `head` does, ends without an error', async () => {
  const env = { ...process.env, DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url };
  const child = spawn(process.execPath, ['--import', tsx, join(ROOT, 'src/cli/main.ts'), 'doctor'], { cwd: ROOT, env });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(said).toBe('');
  expect([0, 1]).toContain(code);
});

test.skipIf(!existsSync('/dev/full'))('a full disk behind stdout is one sentence on stderr', async () => {
  const full = openSync('/dev/full', 'w');
  const main = [join(ROOT, 'src/cli/main.ts'), '--help'];
  const child = spawn(process.execPath, ['--import', tsx, ...main], { cwd: ROOT, stdio: ['ignore', full, 'pipe'] });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  closeSync(full);
  expect(said).toMatch(/^fenced-lock: The output cannot be written: ENOSPC: no space left on device, write\.\n$/);
  expect(code).toBe(1);
});
