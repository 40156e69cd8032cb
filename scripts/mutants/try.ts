import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { luaModule } from '../generate/lua.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NOT_COPIED: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist']);
/** How long the tests of one mutant may take; most end at their first failure. */
const TIME_LIMIT = 240_000;

/** A change of a line or two that a promise rests on. The tests must not let it pass. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Pieces of the file, each of which is there exactly once, and what stands in their place. */
  readonly change: ReadonlyArray<readonly [from: string, to: string]>;
  /** The test files that should fail, without `.test.ts`. */
  readonly tests: readonly string[];
  /** Of these, the tests whose names match. */
  readonly only?: string;
  readonly why: string;
}

/** `broken`: no test has failed, and yet they did not run well, so this shows nothing. */
export interface Verdict {
  readonly found: 'killed' | 'survived' | 'timeout' | 'broken';
  /** The first test that failed, or what went wrong. */
  readonly by: string;
  readonly seconds: number;
}

/** What vitest's JSON reporter writes, as far as it is used. */
interface Report {
  readonly numPassedTests: number;
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly message: string;
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>;
  }>;
}

/** Runs the tests of a mutant in a copy of the tree with its change; `unchanged`: without. */
export async function attempt(mutant: Mutant, unchanged = false): Promise<Verdict> {
  const began = performance.now();
  const tree = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    cpSync(ROOT, tree, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    const wrong = unchanged ? undefined : apply(mutant, tree);
    const verdict = wrong === undefined ? await judge(mutant, tree) : ({ found: 'broken', by: wrong } as const);
    return { ...verdict, seconds: (performance.now() - began) / 1000 };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/** @throws where the file is not what the change was written for */
export function check(mutant: Mutant): void {
  mutate(readFileSync(join(ROOT, mutant.file), 'utf8'), mutant);
}

function mutate(text: string, { name, file, change }: Mutant): string {
  return change.reduce((changed, [from, to]) => {
    const [before, after, more] = changed.split(from);
    if (before === undefined || after === undefined || more !== undefined) {
      const times = changed.split(from).length - 1;
      throw new Error(`${name}: this piece is ${times} times in ${file}, and must be there once:\n${from}`);
    }
    return before + to + after;
  }, text);
}

/** Says what is wrong where no script can be made of the change. */
function apply(mutant: Mutant, tree: string): string | undefined {
  const file = join(tree, mutant.file);
  writeFileSync(file, mutate(readFileSync(file, 'utf8'), mutant));
  try {
    const scripts = luaModule(pathToFileURL(join(tree, 'lua/')));
    writeFileSync(join(tree, 'src/redis/scripts.generated.ts'), scripts);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

async function judge({ tests, only }: Mutant, tree: string): Promise<Pick<Verdict, 'found' | 'by'>> {
  const out = join(tree, 'report.json');
  const args = ['run', ...tests.map((test) => `${test}.test.ts`), '--bail=1', '--reporter=json', `--outputFile=${out}`];
  if (only !== undefined) args.push('-t', only);
  const vitest = spawn(join(tree, 'node_modules/.bin/vitest'), args, { cwd: tree, stdio: 'pipe', detached: true });
  let said = '';
  for (const stream of [vitest.stdout, vitest.stderr]) stream.on('data', (part) => (said += String(part)));
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    // Its workers and servers too: they are of its process group.
    if (vitest.pid !== undefined) process.kill(-vitest.pid, 'SIGKILL');
  }, TIME_LIMIT);
  const code = await new Promise((resolve) => vitest.once('close', resolve));
  clearTimeout(limit);
  if (late) return { found: 'timeout', by: '' };
  if (!existsSync(out)) return { found: 'broken', by: said.trim().slice(-500) };
  const report = JSON.parse(readFileSync(out, 'utf8')) as Report;
  for (const { name, assertionResults } of report.testResults) {
    const failed = assertionResults.find(({ status }) => status === 'failed');
    if (failed) return { found: 'killed', by: `${name.slice(tree.length + 1)}: ${failed.fullName}` };
  }
  if (report.numPassedTests > 0 && code === 0) return { found: 'survived', by: '' };
  const trouble = report.testResults.find(({ message }) => message !== '')?.message;
  return { found: 'broken', by: trouble ?? (said.trim().slice(-500) || 'no test ran') };
}
