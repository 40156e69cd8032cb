import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** Debian keeps servers where a user's `PATH` does not always lead. */
const MORE = '/usr/sbin';

export function onPath(name: string): string | undefined {
  return [...(process.env['PATH'] ?? '').split(delimiter), MORE]
    .map((dir) => join(dir, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Where a package of the project that is tested is: optional ones are looked for there, whoever has installed them. */
export function resolveFromProject(name: string): string {
  return createRequire(join(process.cwd(), 'package.json')).resolve(name);
}

/** Who runs Postgres, which refuses to run as root: root gives its rights away, and anybody else may name no other user. */
export const UNPRIVILEGED = process.getuid?.() === 0 ? 65_534 : undefined;

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

/**
 * Below the range from which the kernel takes ports for outgoing connections: a server that was killed must get its
 * port again, and a client that keeps trying a dead port inside that range can be connected to itself. 10,000 are left
 * above each, for the bus port of a Redis Cluster node.
 */
const FIRST = 10_240;
const LAST = 22_240;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
