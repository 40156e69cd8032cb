import { cpSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { createDatabase, type OwnDatabase } from '../cli/database.js';
import { blocks, ROOT } from '../docs/page.js';
import { describeWithShop } from '../support/shop.js';
import { type ModuleFormat, Packed, PackedProject } from './packed.js';

const TSC = { 5: 'typescript/bin/tsc', 7: 'typescript-7/bin/tsc' } as const;
const FACES = ['pg', 'kysely', 'drizzle'] as const;
type Face = (typeof FACES)[number];
/** What a project with this face installs, and the dependencies of the command. Nothing of Prisma. */
const INSTALLED = ['ioredis', 'pg', '@types/pg', '@types/node', 'commander', 'diff'];
const LIBRARY: Readonly<Record<Face, readonly string[]>> = { pg: [], kysely: ['kysely'], drizzle: ['drizzle-orm'] };

vi.setConfig({ testTimeout: 120_000 });

/** The program of a face's page. In CommonJS nothing is awaited outside of functions. */
function programOf(face: Face, format: ModuleFormat): string {
  const [program = ''] = blocks(`docs/guides/${face}.md`);
  return format === 'esm'
    ? program
    : program.replace(/^((?:import .*\n)+)([\s\S]*)$/, '$1async function main() {$2}\nvoid main();\n');
}

describeWithShop('a project without Prisma', () => {
  let packed: Packed;
  let database: OwnDatabase;
  beforeAll(async () => {
    [packed, database] = await Promise.all([Packed.install(), createDatabase()]);
  });
  afterAll(async () => {
    packed?.remove();
    await database?.[Symbol.asyncDispose]();
  });

  /** Outside of this repository, whose `node_modules` would lend Prisma's client. */
  function projectOf(face: Face, format: ModuleFormat): PackedProject {
    const project = new PackedProject(mkdtempSync(join(tmpdir(), 'fenced-lock-face-')));
    cpSync(packed.home, project.path('node_modules/prisma-extension-fenced-lock'), { recursive: true });
    for (const name of [...INSTALLED, ...LIBRARY[face]]) {
      mkdirSync(dirname(project.path('node_modules', name)), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules', name), project.path('node_modules', name));
    }
    writeFileSync(project.path('package.json'), `{ "type": "${format === 'esm' ? 'module' : 'commonjs'}" }`);
    writeFileSync(project.path('shop.ts'), programOf(face, format));
    return project;
  }

  async function expectSale(project: PackedProject, script: string): Promise<void> {
    const main = project.path('node_modules/prisma-extension-fenced-lock/dist/cli/main.js');
    await database.pool.query(
      'DROP TABLE IF EXISTS stock; CREATE TABLE stock (id int PRIMARY KEY, quantity int NOT NULL)',
    );
    await database.pool.query('INSERT INTO stock VALUES (1, 10)');
    await database.pool.query(await project.run(main, 'sql', '--table', 'public.stock'));
    await project.runWith({ DATABASE_URL: database.url, REDIS_URL: inject('redis').url ?? '' }, project.path(script));
    const { rows } = await database.pool.query('SELECT quantity, fence::int > 0 AS fenced FROM stock');
    expect(rows).toEqual([{ quantity: 9, fenced: true }]);
  }

  describe.each(FACES)('with /%s', (face) => {
    /** The types of Drizzle name many drivers that nobody installs together. */
    const lax = face === 'drizzle' ? ['--skipLibCheck'] : [];
    const compile = (project: PackedProject, version: 5 | 7, ...options: string[]) =>
      project.run(TSC[version], '--strict', '--target', 'ES2022', '--types', 'node', ...lax, ...options, 'shop.ts');

    test('is imported: compiles with `nodenext` and `bundler`, runs as ESM, and in a bundle', async () => {
      const project = projectOf(face, 'esm');
      const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit'];
      expect(await compile(project, 7, ...bundler)).toBe('');
      expect(await compile(project, 7, '--module', 'nodenext', '--outDir', 'out')).toBe('');
      await expectSale(project, 'out/shop.js');
      const outfile = project.path('bundle/shop.js');
      const external = ['ioredis', 'pg'];
      await build({
        entryPoints: [project.path('shop.ts')],
        outfile,
        external,
        format: 'esm',
        bundle: true,
        platform: 'node',
      });
      await expectSale(project, 'bundle/shop.js');
      project.remove();
    });

    test('is required: compiles with `node10` and `nodenext`, and runs as CommonJS', async () => {
      const project = projectOf(face, 'cjs');
      const interop = ['--esModuleInterop', '--module'];
      expect(await compile(project, 5, ...interop, 'nodenext', '--noEmit')).toBe('');
      const node10 = ['commonjs', '--moduleResolution', 'node10', '--outDir', 'out'];
      expect(await compile(project, 5, ...interop, ...node10)).toBe('');
      await expectSale(project, 'out/shop.js');
      project.remove();
    });
  });
});
