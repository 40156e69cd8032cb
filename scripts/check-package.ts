// publint and @arethetypeswrong/cli on the tarball that would be published, and the links of the documents in it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-pack-'));
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
try {
  run('npm', 'pack', '--silent', '--pack-destination', folder);
  const tarball = join(folder, `prisma-extension-fenced-lock-${process.env['npm_package_version']}.tgz`);
  for (const [tool, ...args] of [
    ['node_modules/.bin/publint', 'run', tarball, '--strict'],
    ['node_modules/.bin/attw', tarball],
  ] as const) {
    process.stdout.write(run(tool, ...args));
  }
  run('tar', '-xzf', tarball, '-C', folder);
  const broken = brokenLinks(join(folder, 'package'));
  if (broken.length > 0) throw new Error(`Links of packed documents lead to what is not packed:\n${broken.join('\n')}`);
} finally {
  rmSync(folder, { recursive: true });
}

/** Relative links that lead to no file, nor to a folder, below `home`. */
function brokenLinks(home: string): string[] {
  const files = readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'));
  return files.flatMap((file) =>
    [...readFileSync(join(home, file), 'utf8').matchAll(/\]\((?!#|[a-z]+:)([^)#\s]+)[^)]*\)/g)]
      .map(([, target = '']) => join(home, dirname(file), target))
      .filter((target) => relative(home, target).startsWith('..') || !existsSync(target))
      .map((target) => `${file}: ${relative(home, target)}`),
  );
}
