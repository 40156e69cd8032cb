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
    const ready: Array<{ temporary: string; path: string; before: string | undefined }> = [];
    for (const { path: given, before, after } of changes) {
      // The target of a symbolic link is replaced, and the link stays.
      const path = before === undefined ? given : await realpath(given);
      const made = await mkdir(dirname(path), { recursive: true });
      if (made !== undefined) undo.push(() => rm(made, { recursive: true, force: true }));
      const temporary = join(dirname(path), `.fenced-lock-${randomUUID()}.tmp`);
      undo.push(() => rm(temporary, { force: true }));
      await writeFile(temporary, after, { flag: 'wx' });
      // chmod, because the umask restricts the mode of a new file.
      if (before !== undefined) await chmod(temporary, (await stat(path)).mode & 0o777);
      ready.push({ temporary, path, before });
    }
    for (const { temporary, path, before } of ready) {
      await rename(temporary, path);
      undo.push(() => (before === undefined ? rm(path, { force: true }) : writeFile(path, before)));
    }
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    if (codeOf(error) === undefined) throw error;
    throw new Problem(`Nothing was written: ${messageOf(error)}.`, { cause: error });
  }
}
