// publint and @arethetypeswrong/cli on the tarball that would be published.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-pack-'));
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
try {
  run('npm', 'pack', '--silent', '--pack-destination', folder);
  const tarball = join(folder, `prisma-extension-fenced-lock-${process.env['npm_package_version']}.tgz`);
  for (const [tool, ...args] of [
    ['node_modules/.bin/publint', 'run', tarball, '--strict'],
    // ESM only: `require()` of it works on every Node that `engines` allows, and is what the ignored rule is about.
    ['node_modules/.bin/attw', tarball, '--profile', 'esm-only'],
  ] as const) {
    process.stdout.write(run(tool, ...args));
  }
} finally {
  rmSync(folder, { recursive: true });
}
