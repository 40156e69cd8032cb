import { execFile } from 'node:child_process';

export interface RunOptions {
  readonly user?: number | undefined;
  readonly cwd?: string;
}

/** Runs a program to its end; what it printed is in the error if it failed. */
export function run(command: string, args: readonly string[], { user, cwd = '/' }: RunOptions = {}): Promise<string> {
  const options = {
    cwd,
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    ...(user !== undefined && { uid: user, gid: user }),
  };
  return new Promise((resolve, reject) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command} failed: ${error.message}\n${stdout}${stderr}`, { cause: error }));
      else resolve(stdout);
    });
  });
}
