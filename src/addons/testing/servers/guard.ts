import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REAPER } from './reaper.generated.js';

/** What the reaper ends and removes if this process dies without doing it. */
export interface Guarded {
  readonly dir?: string;
  readonly pid?: number;
  /** Sent first, for servers that have something to give back; SIGKILL follows. */
  readonly endSignal?: NodeJS.Signals;
}

export interface Guard {
  update(guarded: Guarded): void;
  release(): void;
}

let reaper: ChildProcess | undefined;

export function guard(guarded: Guarded): Guard {
  const id = randomUUID();
  tell({ verb: 'guard', id, ...guarded });
  return {
    update: (changed) => tell({ verb: 'guard', id, ...changed }),
    release: () => tell({ verb: 'release', id }),
  };
}

/** A directory that vanishes with this process, and everything that runs in it too. */
export interface GuardedDir extends Guard {
  readonly path: string;
  /** Removes it now. The processes in it must have ended. */
  remove(): void;
}

export function guardedDir(
  name: string,
  options: { owner?: number | undefined; endSignal?: NodeJS.Signals } = {},
): GuardedDir {
  // realpath, because the reaper compares with what the kernel calls it.
  const path = join(realpathSync(tmpdir()), `fenced-lock-${name}-${randomUUID()}`);
  // Guarded before it exists: a parent killed between the two leaves nothing.
  const held = guard({ dir: path, ...(options.endSignal && { endSignal: options.endSignal }) });
  mkdirSync(path, { mode: 0o755 });
  if (options.owner !== undefined) chownSync(path, options.owner, options.owner);
  return {
    path,
    ...held,
    remove: () => {
      rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      held.release();
    },
  };
}

function tell(message: object): void {
  reaper ??= startReaper();
  reaper.stdin?.write(`${JSON.stringify(message)}\n`);
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
