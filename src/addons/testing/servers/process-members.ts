import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';

/** The processes of one server. */
export interface Group {
  /** Working directory that only these processes have. */
  readonly dir?: string | undefined;
  /** Root of the process tree, for systems without /proc. */
  readonly pid?: number | undefined;
}

/**
 * All living processes of one server. A process group would miss most of them: each Postgres backend calls setsid().
 * On Linux they are known by their working directory, which is theirs alone: that finds backends whose postmaster is
 * dead already, and can never hit a stranger who was given a used pid.
 */
export function membersOf({ dir, pid }: Group): number[] {
  if (dir === undefined) return pid === undefined ? [] : [pid];
  if (process.platform === 'linux') return membersByDirectory(dir);
  return pid === undefined ? [] : membersByParent(pid);
}

function membersByDirectory(dir: string): number[] {
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

function membersByParent(root: number): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , state]) => state !== undefined && !state.startsWith('Z'));
  const members = new Set(rows.some(([pid]) => Number(pid) === root) ? [root] : []);
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const [pid, parent] of rows) if (members.has(Number(parent))) members.add(Number(pid));
  }
  return [...members];
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
