import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SHOP = fileURLToPath(new URL('fixtures/shop/', import.meta.url));

export type ModuleFormat = 'esm' | 'cjs';

/**
 * A folder with the package as it is published, installed. It stands in this repository, so that its projects find the
 * peers in `node_modules` above, as those of a workspace do.
 */
export class Packed {
  readonly folder: string;
  readonly home: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.home = join(folder, 'node_modules/prisma-extension-fenced-lock');
  }

  static async install(): Promise<Packed> {
    const packed = new Packed(mkdtempSync(join(ROOT, '.packed-')));
    try {
      const tarball = await pack(packed.folder);
      mkdirSync(packed.home, { recursive: true });
      await promisify(execFile)('tar', ['-xzf', tarball, '--strip-components=1', '-C', packed.home]);
      return packed;
    } catch (error) {
      packed.remove();
      throw error;
    }
  }

  /** A project with a Prisma client of this format, in a folder of its own. */
  async project(format: ModuleFormat): Promise<PackedProject> {
    const project = new PackedProject(join(this.folder, format));
    cpSync(SHOP, project.folder, { recursive: true });
    writeFileSync(project.path('package.json'), `{ "type": "${format === 'esm' ? 'module' : 'commonjs'}" }`);
    const schema = project.path('schema.prisma');
    writeFileSync(schema, readFileSync(schema, 'utf8').replace('MODULE_FORMAT', format));
    return await project.generate();
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A copy of `fixture` outside of this repository, into which npm has installed the package as anybody would. */
export async function installed(fixture: URL): Promise<PackedProject> {
  const project = new PackedProject(mkdtempSync(join(tmpdir(), 'fenced-lock-install-')));
  cpSync(fixture, project.folder, { recursive: true });
  const install = ['install', '--no-audit', '--no-fund', '--silent', await pack(project.folder)];
  await promisify(execFile)('npm', install, { cwd: project.folder });
  return existsSync(project.path('schema.prisma')) ? await project.generate() : project;
}

export class PackedProject {
  readonly folder: string;
  /** What its scripts are run by. */
  node = process.execPath;

  constructor(folder: string) {
    this.folder = folder;
  }

  async generate(): Promise<this> {
    // See scripts/generate/clients.ts.
    const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' };
    await this.runWith(env, 'prisma/build/index.js', 'generate', '--schema', this.path('schema.prisma'));
    return this;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  read(file: string): string {
    return readFileSync(this.path(file), 'utf8');
  }

  /** Runs a script of `node_modules`, or one of its own by an absolute path. @returns what it wrote; rejects if it failed. */
  async run(script: string, ...args: string[]): Promise<string> {
    return await this.runWith({}, script, ...args);
  }

  async runWith(env: Record<string, string>, script: string, ...args: string[]): Promise<string> {
    return await this.runNode(env, script.startsWith('/') ? script : join(ROOT, 'node_modules', script), ...args);
  }

  /** Runs Node with these arguments. */
  async runNode(env: Record<string, string>, ...args: string[]): Promise<string> {
    const own = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env };
    try {
      const { stdout } = await promisify(execFile)(this.node, args, { cwd: this.folder, env: own });
      return stdout;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${args.join(' ')} failed:\n${stdout}${stderr}`);
    }
  }
}

/** Packs what `npm run build` has made: built here, it would be taken away under other tests. @returns the tarball's path. */
export async function pack(folder: string): Promise<string> {
  const built = statSync(join(ROOT, 'dist/cjs/package.json'), { throwIfNoEntry: false });
  if (built === undefined || newest('src') > built.mtimeMs) {
    throw new Error('dist/ is older than src/: run `npm run build`');
  }
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  const { stdout } = await promisify(execFile)('npm', pack, { cwd: ROOT });
  return join(folder, stdout.trim());
}

/** When a file below was changed last. */
function newest(folder: string): number {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return Math.max(...files.map((file) => statSync(join(ROOT, folder, file)).mtimeMs));
}
