import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../../src/addons/testing/servers/programs.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';

const SOURCE = fileURLToPath(new URL('wall-clock.c', import.meta.url));

const FILE = 'wall-clock';

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

/** For the `env` of a server whose wall clock is to be moved. Where that cannot be, it has the true one. */
export async function wallClock(dir: string): Promise<Record<string, string>> {
  if (wallClocksUnavailable() !== undefined) return {};
  const [library, file] = [join(dir, 'wall-clock.so'), join(dir, FILE)];
  await run('gcc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE]);
  writeFileSync(file, BigInt64Array.of(0n));
  return { LD_PRELOAD: library, WALL_CLOCK_FILE: file };
}

/** As if somebody had set the clock of a server: so many milliseconds ahead of the true time. Whole seconds; over restarts, too. */
export function moveClock({ dir }: { readonly dir: string }, ms: number): void {
  const why = wallClocksUnavailable();
  if (why !== undefined) throw new ServerUnavailable(why);
  // In place, because the server has mapped the file that is there.
  writeFileSync(join(dir, FILE), BigInt64Array.of(BigInt(Math.round(ms / 1_000))), { flag: 'r+' });
}
