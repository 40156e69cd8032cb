import { randomUUID } from 'node:crypto';
import { chmod, mkdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, messageOf, Problem } from '../problem.js';

/** A file as it is to be. `before` undefined: it must not exist yet. */
export interface Change {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string;
}

/**
 * Writes all of the files or none: first all under other names, beside their places, and only when every one of them
 * is written are they renamed. What was renamed is put back if a later one fails.
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
      // Past the umask, which would narrow it.
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

/** A file that is a link is replaced where it really is, and the link stays. */
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
      return messageOf(error);
  }
}
