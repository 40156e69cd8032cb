import { randomUUID } from 'node:crypto';
import { lstatSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardedDir } from './guard.js';

/** systemd removes files from /tmp that nobody used for ten days, one by one: a cache must be younger than that. */
const PERIOD = 3 * 24 * 60 * 60 * 1000;

/**
 * A directory that is filled once per machine and owner, and then shared. The owner is part of its name, so that root
 * and others do not meet; it is built elsewhere and renamed, so that it is seen complete or not at all.
 */
export async function cachedDir(name: string, owner: number, fill: (dir: string) => Promise<void>): Promise<string> {
  const root = realpathSync(tmpdir());
  const prefix = `fenced-lock-cache-${name}-uid${owner}-`;
  const period = Math.floor(Date.now() / PERIOD);
  const path = join(root, `${prefix}${period}`);
  if (isTrusted(path, owner)) return path;

  const work = guardedDir('cache', { owner });
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
