import { randomUUID } from 'node:crypto';
import { chmod, mkdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, messageOf, Problem } from '../problem.js';

/** A file to be written. If `before` is undefined, the file must not exist. */
export interface Change {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string;
}

/**
 * Writes all files or none: each under a temporary name in its folder first, and renamed when all are written. If a
 * rename fails, earlier ones are undone.
 */
export async function write(changes: readonly Change[]): Promise<void> {
  const undo: Array<() => Promise<unknown>> = [];
  try {
    const ready: Array<{ change: Change; temporary: string }> = [];
    for (const wanted of changes) {
      const change = await behindLink(wanted);
      await makeFolder(dirname(change.path), undo);
      const temporary = join(dirname(change.path), `.fenced-lock-${randomUUID()}.tmp`);
      undo.push(() => rm(temporary, { force: true }));
      await writeFile(temporary, change.after, { flag: 'wx' });
      // chmod, because the umask restricts the mode of a new file.
      if (change.before !== undefined) await chmod(temporary, (await stat(change.path)).mode & 0o777);
      ready.push({ change, temporary });
    }
    for (const { change, temporary } of ready) {
      await rename(temporary, change.path);
      undo.push(() => putBack(change));
    }
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    if (codeOf(error) === undefined) throw error;
    throw new Problem(`Nothing was written: ${plain(error)}`, { cause: error });
  }
}

async function makeFolder(path: string, undo: Array<() => Promise<unknown>>): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first !== undefined) undo.push(() => rm(first, { recursive: true, force: true }));
}

/** The target of a symbolic link is replaced, and the link stays. */
async function behindLink(change: Change): Promise<Change> {
  return change.before === undefined ? change : { ...change, path: await realpath(change.path) };
}

function putBack({ path, before }: Change): Promise<void> {
  return before === undefined ? rm(path, { force: true }) : writeFile(path, before);
}

function plain(error: unknown): string {
  const path = (error as { path?: unknown }).path;
  const where = typeof path === 'string' ? dirname(path) : 'the folder';
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `this user may not write to ${where}.`;
    case 'ENOTDIR':
    case 'EEXIST':
      return `${where} cannot be made, or is not a folder.`;
    case 'ENOSPC':
      return 'the disk is full.';
    default:
      return `${messageOf(error)}.`;
  }
}
