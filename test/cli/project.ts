import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { World } from '../../src/cli/context.js';
import { run } from '../../src/cli/program.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** What --json wrote. */
  readonly json: Record<string, unknown>;
}

/** A Prisma project in a folder of its own, and the command line in it. */
export class Project {
  readonly folder: string;
  readonly env: Record<string, string | undefined>;
  now = new Date('2026-11-20T10:00:00Z');

  /** `files` by their paths; the value `fixture:<name>` copies a folder of test/cli/fixtures there. */
  constructor(files: Record<string, string> = {}, env: Record<string, string | undefined> = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'fenced-lock-cli-'));
    this.env = env;
    for (const [path, text] of Object.entries(files)) {
      if (text.startsWith('fixture:')) {
        cpSync(join(ROOT, 'test/cli/fixtures', text.slice('fixture:'.length)), join(this.folder, path), {
          recursive: true,
        });
      } else {
        this.write(path, text);
      }
    }
  }

  /** Runs a command line in this process. */
  async run(...args: string[]): Promise<Ran> {
    const written = { out: '', err: '' };
    const sink = (to: 'out' | 'err') => ({
      write: (text: string) => {
        written[to] += text;
      },
    });
    const world: World = {
      cwd: this.folder,
      env: this.env,
      now: () => this.now,
      stdout: sink('out'),
      stderr: sink('err'),
    };
    const code = await run(args, world);
    const json = args.includes('--json') && written.out.startsWith('{') ? JSON.parse(written.out) : {};
    return { code, ...written, json };
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), text);
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8');
  }

  /** Every file by its path, with its text. */
  files(): Record<string, string> {
    const paths = readdirSync(this.folder, { recursive: true, encoding: 'utf8' }).sort();
    const files = paths.filter((path) => statSync(this.path(path)).isFile());
    return Object.fromEntries(files.map((path) => [relative('.', path), this.read(path)]));
  }

  /** The newest migration: the name of its folder, and its script. */
  migration(folder = 'prisma/migrations'): { name: string; sql: string } {
    const entries = readdirSync(this.path(folder), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const name = entries
      .map((entry) => entry.name)
      .sort()
      .at(-1);
    if (name === undefined) throw new Error('there is no migration');
    return { name, sql: this.read(join(folder, name, 'migration.sql')) };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A project for one test. */
export function project(files?: Record<string, string>, env?: Record<string, string | undefined>): Project {
  const project = new Project(files, env);
  onTestFinished(() => project.remove());
  return project;
}

/** An output without what differs from run to run: ids, times, tokens, addresses and processes. */
export function steady(text: string): string {
  return (
    text
      // What it does is tested on a server.
      .replaceAll(/DO \$fenced_lock\$\n[\s\S]*?\$fenced_lock\$;/g, 'DO <a block>;')
      .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '<id>')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(
        /(\w+@)?(127\.0\.0\.1|localhost):\d+(\/\w+)?/g,
        (_, user, __, path) => `<${user ?? ''}server>${path ? '/<database>' : ''}`,
      )
      .replaceAll(/\b(cli|unlock|doctor)_[\da-f]{32}/g, '$1_<id>')
      .replaceAll(/ok +version .*/g, 'ok version <version>')
      .replaceAll(/version \d+ of the objects/g, 'version <n> of the objects')
      .replaceAll(/(last token|WHO WAITS.*<s> s +1) +\d+/gs, '$1 <n>')
      .replaceAll(/\b\d+ since/g, '<pid> since')
      .replaceAll(/(backend|token|tokens?:? was|and is|is) \d+/g, '$1 <n>')
      .replaceAll(/"(token|after|before|turns)": "\d+"/g, '"$1": "<n>"')
      .replaceAll(/"(expiresIn|pid)": \d+/g, '"$1": 0')
      .replaceAll(/\d+\.\d s\b/g, '<s> s')
      .replaceAll(/[ ]{2,}/g, '  ')
  );
}
