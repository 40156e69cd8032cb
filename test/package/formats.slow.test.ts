import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';
import { type ModuleFormat, Packed, type PackedProject } from './packed.js';

const shop = new Shop();
const TSC = { 5: ['typescript/bin/tsc'], 7: ['typescript-7/bin/tsc', '--ignoreConfig'] } as const;
// Without the types of this repository's own tools, which TypeScript 5 would add.
const STRICT = ['--strict', '--esModuleInterop', '--declaration', '--target', 'ES2022', '--types', 'node'];

/** A compiler takes seconds even where nothing else runs. */
vi.setConfig({ testTimeout: 120_000 });

describeWithShop('the packed package', () => {
  let packed: Packed;
  let projects: Record<ModuleFormat, PackedProject>;

  beforeAll(async () => {
    packed = await Packed.install();
    const [esm, cjs] = await Promise.all([packed.project('esm'), packed.project('cjs')]);
    projects = { esm, cjs };
  });
  afterAll(() => packed.remove());

  /** Sells one product by a program, and looks at what stands in the database then. */
  async function expectSale(sell: (id: number, env: Record<string, string>) => Promise<string>): Promise<void> {
    const { id } = await shop.product(10);
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url ?? '' };
    expect(await sell(id, env)).toContain('left: 9');
    const row = await shop.row(id);
    expect(row?.quantity).toBe(9);
    expect(row?.fence).toBeGreaterThan(0n);
  }

  /** What the compiler says; nothing, or it rejects. */
  async function compile(version: 5 | 7, format: ModuleFormat, ...options: string[]): Promise<string> {
    const [tsc, ...own] = TSC[version];
    return await projects[format].run(tsc, ...own, ...STRICT, ...options, 'main.ts');
  }

  test('is imported: TypeScript with `module: nodenext` compiles, with declarations, and runs as ESM', async () => {
    expect(await compile(7, 'esm', '--module', 'nodenext', '--outDir', 'out')).toBe('');
    expect(readFileSync(projects.esm.path('out/shop.js'), 'utf8')).toMatch(
      /^import .*'prisma-extension-fenced-lock';$/m,
    );
    await expectSale((id, env) => projects.esm.runWith(env, projects.esm.path('out/main.js'), String(id)));
  });

  test('is required: TypeScript with `module: commonjs` and `moduleResolution: node10` compiles, with declarations, and runs', async () => {
    const node10 = ['--module', 'commonjs', '--moduleResolution', 'node10', '--outDir', 'out'];
    expect(await compile(5, 'cjs', ...node10)).toBe('');
    expect(readFileSync(projects.cjs.path('out/shop.js'), 'utf8')).toContain('require("prisma-extension-fenced-lock")');
    await expectSale((id, env) => projects.cjs.runWith(env, projects.cjs.path('out/main.js'), String(id)));
  });

  test.each<[5 | 7, ModuleFormat, string, string]>([
    [5, 'cjs', 'node16', 'node16'],
    [7, 'cjs', 'commonjs', 'bundler'],
    [7, 'esm', 'node16', 'node16'],
    [7, 'esm', 'esnext', 'bundler'],
  ])(
    'has types for TypeScript %i, %s, `module: %s` and `moduleResolution: %s`',
    async (version, format, module, resolution) => {
      const options = ['--module', module, '--moduleResolution', resolution, '--outDir', 'types'];
      expect(await compile(version, format, ...options)).toBe('');
      // The exported client keeps its methods for who imports the declarations.
      expect(readFileSync(projects[format].path('types/shop.d.ts'), 'utf8')).toMatch(/\$withLock/);
    },
  );

  test.each<ModuleFormat>(['esm', 'cjs'])('runs under tsx in a project of type %s', async (format) => {
    const project = projects[format];
    await expectSale((id, env) => project.runWith(env, 'tsx/dist/cli.mjs', project.path('main.ts'), String(id)));
  });

  test.each<ModuleFormat>(['esm', 'cjs'])('runs bundled by esbuild as %s', async (format) => {
    const project = projects[format];
    const outfile = project.path('bundle', 'main.js');
    // They are CommonJS, which no bundle of ESM can hold.
    const external = ['@prisma/*', 'ioredis', 'pg'];
    const entryPoints = [project.path('main.ts')];
    const { metafile } = await build({
      entryPoints,
      outfile,
      external,
      format,
      bundle: true,
      platform: 'node',
      metafile: true,
    });
    expect(Object.keys(metafile.inputs).join()).toContain('prisma-extension-fenced-lock/dist/');
    expect(Object.values(metafile.outputs)[0]?.imports.map(({ path }) => path)).not.toContain(
      'prisma-extension-fenced-lock',
    );
    await expectSale((id, env) => project.runWith(env, outfile, String(id)));
  });

  test.each([
    ['as Node loads it', {}],
    ['inlined', { server: { deps: { inline: ['prisma-extension-fenced-lock'] } } }],
  ])('runs under vitest, %s', async (_, options) => {
    const project = projects.esm;
    const config = project.path('vitest.config.mjs');
    writeFileSync(config, `export default ${JSON.stringify({ test: { include: ['*.vitest.ts'], ...options } })};`);
    await expectSale(async (id, env) => {
      const vitest = ['vitest/vitest.mjs', 'run', '--config', config, '--root', project.folder] as const;
      const said = await project.runWith({ ...env, STOCK_ID: String(id) }, ...vitest);
      return /1 passed/.test(said) ? 'left: 9' : said;
    });
  });

  test('has the command beside both forms', async () => {
    const { version } = JSON.parse(readFileSync(join(packed.home, 'package.json'), 'utf8')) as { version: string };
    expect(await projects.cjs.run(join(packed.home, 'dist/cli/main.js'), '--version')).toContain(version);
  });
});
