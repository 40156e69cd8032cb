import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, messageOf, Problem } from '../problem.js';

/** A file to be written. If `before` is undefined, the file must not exist. */
export interface Change {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string;
}

/** Writes all files or none: if one fails, those before it are undone. A link stays one, and a file keeps its mode. */
export async function write(changes: readonly Change[]): Promise<void> {
  const undo: Array<() => Promise<unknown>> = [];
  try {
    for (const { path, before, after } of changes) {
      const made = await mkdir(dirname(path), { recursive: true });
      if (made !== undefined) undo.push(() => rm(made, { recursive: true, force: true }));
      if (before === undefined) {
        await writeFile(path, '', { flag: 'wx' });
        undo.push(() => rm(path, { force: true }));
      } else {
        undo.push(() => writeFile(path, before));
      }
      await writeFile(path, after);
    }
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    if (codeOf(error) === undefined) throw error;
    throw new Problem(`Nothing was written: ${messageOf(error)}.`, { cause: error });
  }
}
