import { readdirSync, readlinkSync } from 'node:fs';

/** The processes of one server. */
export interface Group {
  /** Working directory that only these processes have. */
  readonly dir?: string | undefined;
  /** Its first process, for systems without /proc: there, the others have to end with it. */
  readonly pid?: number | undefined;
}

/**
 * All living processes of one server. A process group would miss most of them: each Postgres backend calls setsid().
 * On Linux they are known by their working directory, which is theirs alone: that finds backends whose postmaster is
 * dead already, and can never hit a stranger who was given a used pid.
 */
export function membersOf({ dir, pid }: Group): number[] {
  if (dir === undefined || process.platform !== 'linux') return pid !== undefined && lives(pid) ? [pid] : [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const cwd = readlinkSync(`/proc/${name}/cwd`);
      // The kernel adds " (deleted)" when the directory is gone.
      return cwd === dir || cwd.startsWith(`${dir}/`) || cwd.startsWith(`${dir} `) ? [Number(name)] : [];
    } catch {
      return []; // ended meanwhile, a zombie, or another user's
    }
  });
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
