import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
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
