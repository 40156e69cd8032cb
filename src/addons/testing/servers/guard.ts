import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Group } from './process-members.js';
import { REAPER } from './reaper.generated.js';

/** What is ended, and removed, if this process dies without doing it. */
export interface Guarded extends Group {
  /** Sent first, for servers that have something to give back; SIGKILL follows. */
  readonly endSignal?: NodeJS.Signals | undefined;
}

let reaper: ChildProcess | undefined;

/** Guards it from now on. Returns what changes that: it is called without anything when there is nothing left to end. */
export function guard(guarded: Guarded): (changed?: Guarded) => void {
  const id = randomUUID();
  const tell = (changed?: Guarded) => {
    reaper ??= startReaper();
    reaper.stdin?.write(`${JSON.stringify({ id, guarded: changed })}\n`);
  };
  tell(guarded);
  return tell;
}

/** A directory that vanishes with this process, and everything that runs in it too. */
export interface GuardedDir {
  readonly path: string;
  /** Its first process. */
  runs(pid: number): void;
  /** Removes it now. The processes in it must have ended. */
  remove(): void;
}

export function guardedDir(
  name: string,
  { owner, endSignal }: { owner?: number | undefined; endSignal?: NodeJS.Signals } = {},
): GuardedDir {
  // realpath, because the reaper compares with what the kernel calls it.
  const path = join(realpathSync(tmpdir()), `fenced-lock-${name}-${randomUUID()}`);
  // Guarded before it exists: a parent killed between the two leaves nothing.
  const tell = guard({ dir: path, endSignal });
  mkdirSync(path, { mode: 0o755 });
  if (owner !== undefined) chownSync(path, owner, owner);
  return {
    path,
    runs: (pid) => tell({ dir: path, pid, endSignal }),
    remove() {
      rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      tell();
    },
  };
}

function startReaper(): ChildProcess {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', REAPER], {
    // Its own session: Ctrl-C in the terminal must not end it before its work is done.
    detached: true,
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  // A pipe to a child is a Socket at run time; it must not keep a finished program alive.
  (child.stdin as Socket | null)?.unref();
  child.stdin?.on('error', () => {
    reaper = undefined;
  });
  return child;
}
