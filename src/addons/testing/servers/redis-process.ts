import { dirname, join } from 'node:path';
import { guardedDir } from './guard.js';
import { onPath } from './on-path.js';
import { resolveFromProject } from './project.js';
import { answersFromProcess, answersPing, versionOf } from './redis-ping.js';
import type { RedisServer } from './redis-server.js';
import { Supervised } from './supervised.js';
import { type MakeClock, trueTime } from './wall-clock.js';

const HOST = '127.0.0.1';

export interface RedisProgram {
  readonly kind: 'redis-server' | 'valkey-server' | 'emulator';
  readonly command: string;
  args(port: number, dir: string): string[];
  /** Default: the true time. */
  readonly clock?: MakeClock | undefined;
}

type RealKind = 'redis-server' | 'valkey-server';

export function redisOnPath(kinds: readonly RealKind[] = ['redis-server', 'valkey-server']): RedisProgram | undefined {
  for (const kind of kinds) {
    const command = onPath(kind);
    if (command === undefined) continue;
    return {
      kind,
      command,
      args: (port, dir) => ['--port', `${port}`, '--bind', HOST, '--save', '', '--appendonly', 'no', '--dir', dir],
    };
  }
  return undefined;
}

/** A process of its own, so that it can be frozen and killed like the real one. */
export function emulator(): RedisProgram {
  const main = resolveFromProject('js-redis-server');
  return {
    kind: 'emulator',
    command: process.execPath,
    args: (port) => [join(dirname(main), 'cli.js'), '--port', `${port}`],
  };
}

export async function startProgram(
  { kind, command, args, clock: makeClock = trueTime }: RedisProgram,
  more: readonly string[],
): Promise<RedisServer> {
  const dir = guardedDir('redis', { endSignal: 'SIGTERM' });
  const clock = await makeClock(dir.path);
  const server = await Supervised.start({
    dir,
    command,
    args: (port) => [...args(port, dir.path), ...more],
    // The emulator invents its process id.
    ready: kind === 'emulator' ? answersPing : answersFromProcess,
    endSignal: 'SIGTERM',
    env: clock.env,
  });
  const url = `redis://${HOST}:${server.port}`;
  return {
    kind,
    supervised: true,
    version: await versionOf(url),
    url,
    host: HOST,
    port: server.port,
    dir: dir.path,
    get pid() {
      return server.pid;
    },
    freeze: () => server.freeze(),
    thaw: () => server.thaw(),
    moveClock: clock.move,
    killHard: () => server.killHard(),
    start: () => server.start(),
    stop: () => server.stop(),
  };
}
