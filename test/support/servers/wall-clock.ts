import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../../src/addons/testing/servers/programs.js';
import type { WallClock } from '../../../src/addons/testing/servers/server.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';

const SOURCE = fileURLToPath(new URL('wall-clock.c', import.meta.url));

let unavailable: { readonly why: string | undefined } | undefined;

/** Why the wall clock of a server cannot be moved here, in a sentence; undefined if it can. */
export function wallClocksUnavailable(): string | undefined {
  unavailable ??= { why: compiles() ? undefined : UNAVAILABLE };
  return unavailable.why;
}

const UNAVAILABLE =
  'Nothing here compiles the library that sets the wall clock of a server on Linux (Debian: apt-get install gcc libc6-dev).';

function compiles(): boolean {
  return process.platform === 'linux' && spawnSync('gcc', ['-fsyntax-only', SOURCE]).status === 0;
}

/** In the directory of its server. Where clocks cannot be moved it is the true one, and `move` throws why. */
export async function wallClock(dir: string): Promise<WallClock> {
  const why = wallClocksUnavailable();
  if (why !== undefined) return notMovable(why);
  const [library, file] = [join(dir, 'wall-clock.so'), join(dir, 'wall-clock')];
  await run('gcc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE]);
  // In place, because the server has mapped the file that is there.
  const move = (ms: number) => writeFileSync(file, BigInt64Array.of(BigInt(Math.round(ms / 1_000))), { flag: 'r+' });
  writeFileSync(file, '');
  move(0);
  return { env: { LD_PRELOAD: library, WALL_CLOCK_FILE: file }, move };
}

function notMovable(why: string): WallClock {
  const move = () => {
    throw new ServerUnavailable(why);
  };
  return { env: {}, move };
}
