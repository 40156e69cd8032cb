import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { project, ROOT } from './project.js';

const DOCUMENT = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8');
const TREE = /^Commands:\n([\s\S]*?)\n\n/m;

/** What --help lists, in its order. */
async function commands(): Promise<string[]> {
  const { out, code } = await project().run('--help');
  expect(code).toBe(0);
  return [...(TREE.exec(out)?.[1] ?? '').matchAll(/^ {2}(\S+)/gm)]
    .map(([, name]) => name ?? '')
    .filter((n) => n !== 'help');
}

/** The part of the document between a heading and the next. */
function section(name: string): string {
  return new RegExp(`^## ${name}\\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(DOCUMENT)?.[1] ?? '';
}

describe('docs/cli.md', () => {
  test('has a section for every command, and no other', async () => {
    const sections = [...DOCUMENT.matchAll(/^## ([a-z-]+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(await commands());
  });

  test('shows the help of every command as it is, but for the options that all have', async () => {
    for (const command of await commands()) {
      const { out } = await project().run(command, '--help');
      const own = out.replaceAll(/^ {2}(--json|--schema|--config|-h, --help) .*\n/gm, '');
      expect(section(command)).toContain(`\`\`\`\n${own.trimEnd()}\n\`\`\``);
    }
  });

  test('names every check of doctor', async () => {
    const { redisChecks } = await import('../../src/cli/doctor/redis.js');
    const { postgresChecks } = await import('../../src/cli/commands/doctor.js');
    const rows = [...section('doctor').matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
    const checks = new Set(['connection', ...Object.keys({ ...postgresChecks, ...redisChecks })]);
    expect(rows.toSorted()).toEqual([...checks].toSorted());
  });
});

describe('the command line', () => {
  test.each([
    [['--help'], 0],
    [['--version'], 0],
    [[], 2],
    [['init'], 1],
  ])('%j ends with %i', async (args, code) => {
    expect((await project().run(...args)).code).toBe(code);
  });

  test('colours are for terminals alone, and NO_COLOR is heeded', async () => {
    const { run } = await import('../../src/cli/program.js');
    const colours = async (isTTY: boolean, env: Record<string, string>) => {
      const fresh = project({ 'prisma/schema.prisma': 'model A {\n  id Int @id\n}\n' });
      let out = '';
      const stdout = { isTTY, write: (text: string) => (out += text) };
      await run(['init'], { cwd: fresh.folder, env, now: () => new Date(), stdout, stderr: stdout });
      return out.includes('\u001B[');
    };
    const all = await Promise.all([colours(true, {}), colours(true, { NO_COLOR: '1' }), colours(false, {})]);
    expect(all).toEqual([true, false, false]);
  });
});
