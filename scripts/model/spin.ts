import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Run } from './runs.js';

const MODELS = fileURLToPath(new URL('../../model/', import.meta.url));
const OUTPUT = 64 * 1024 * 1024;
const run = promisify(execFile);

export interface Verdict {
  /** What the search found violated; `undefined`: nothing, and it looked everywhere. */
  readonly violated: string | undefined;
  readonly states: number;
  readonly seconds: number;
  /** Where the model has statements with these macros, `file:line`. */
  readonly places: ReadonlySet<string>;
  /** Statements that no execution came to, `file:line statement`. */
  readonly unreached: readonly string[];
  /** How the violation comes about; empty where there is none. */
  readonly trace: string;
}

/** Why models cannot be checked here; `undefined`: they can. */
export async function spinUnavailable(): Promise<string | undefined> {
  for (const [program, flag] of [
    ['spin', '-V'],
    ['gcc', '--version'],
  ] as const) {
    const found = await run(program, [flag]).then(
      () => true,
      () => false,
    );
    if (!found) return `${program} is not on the PATH (Debian: apt-get install spin gcc)`;
  }
  return undefined;
}

/** Searches every execution of the model. */
export async function check({ model, defines, asks, expected, large }: Run): Promise<Verdict> {
  const directory = await mkdtemp(join(tmpdir(), 'fenced-lock-model-'));
  const here = { cwd: directory, maxBuffer: OUTPUT };
  const file = join(MODELS, `${model}.pml`);
  const macros = defines.map((define) => `-D${define}`);
  const forCycles = asks === 'ends';
  try {
    await run('spin', ['-a', ...macros, file], here);
    // A search that is expected to find something is over before an optimised compilation would be.
    const flags = [expected === 'holds' ? '-O1' : '-O0', '-w', '-DNOFAIR'];
    if (large === true) flags.push('-DCOLLAPSE');
    if (forCycles) flags.push('-DNP');
    await run('gcc', [...flags, '-o', 'pan', 'pan.c'], here);
    const begun = performance.now();
    const { stdout } = await run(join(directory, 'pan'), ['-m1000000', ...(forCycles ? ['-l'] : [])], here);
    const seconds = (performance.now() - begun) / 1_000;
    const violated = violation(stdout);
    const trace =
      violated === undefined
        ? ''
        : (await run('spin', ['-k', `${model}.pml.trail`, '-p', ...macros, file], here)).stdout;
    const places = placesIn(await readFile(join(directory, 'pan.m'), 'utf8'));
    return { violated, states: count(stdout), seconds, places, unreached: unreachedIn(stdout), trace };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function violation(output: string): string | undefined {
  const assertion = /^pan:\d+: assertion violated\s+!\((\w+)\)/m.exec(output)?.[1];
  if (assertion !== undefined) return assertion;
  if (/^pan:\d+: invalid end state/m.test(output)) return 'deadlock';
  if (/^pan:\d+: non-progress cycle/m.test(output)) return 'endless';
  if (/errors: 0$/m.test(output) && !/search depth too small|Search not completed|out of memory/i.test(output)) {
    return undefined;
  }
  throw new Error(`spin has not come to a verdict:\n${output}`);
}

function count(output: string): number {
  const states = /^\s*([\d.e+]+) states, stored/m.exec(output)?.[1];
  if (states === undefined) throw new Error(`spin does not say how many states it saw:\n${output}`);
  return Number(states);
}

function placesIn(transitions: string): Set<string> {
  return new Set([...transitions.matchAll(/\/\/ STATE \d+ - \S*\/(\w+\.pml:\d+) - /g)].map(([, place = '']) => place));
}

function unreachedIn(output: string): string[] {
  return [...output.matchAll(/^\t\S*\/(\w+\.pml:\d+), state \d+, "(.*)"$/gm)].map(
    ([, line, text]) => `${line} ${text}`,
  );
}
