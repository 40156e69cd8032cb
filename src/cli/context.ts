import { relative } from 'node:path';
import { styleText } from 'node:util';
import { escapeInvisible } from './visible.js';

/** The environment of one run, which tests replace. */
export interface World {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
  /** Resolves when a command that would go on for ever has to end. */
  readonly stopped?: () => Promise<unknown>;
  readonly stdout: TerminalOutput;
  readonly stderr: TerminalOutput;
}

/** Where text goes: a terminal, or a file or a pipe. */
interface TerminalOutput {
  readonly isTTY?: boolean;
  readonly rows?: number;
  write(text: string): unknown;
}

/** The files of the project that a command uses; `null` if there is no such file, so that Prisma's defaults apply. */
interface Used {
  readonly config: string | null;
  readonly schema?: string;
  readonly migrations?: string;
}

/** A server that a command asks. */
interface AskedServer {
  /** `host:port`, and the database; no user, no password. */
  readonly address: string;
  /** Where its URL was found. */
  readonly from: string;
}

/** The servers that a command asks. */
export interface Asked {
  readonly postgres: AskedServer;
  /** Several have their addresses in one. */
  readonly redis?: AskedServer;
}

type Style = Parameters<typeof styleText>[0];

/** What all commands share: working directory, environment and output. */
export class Context {
  readonly cwd: string;
  readonly env: World['env'];
  /** The environment as it was before a Prisma config was run, which may load a `.env` into it. */
  readonly givenEnv: World['env'];
  readonly now: () => Date;
  readonly isJson: boolean;
  readonly #world: World;
  readonly #hidden = new Map<string, string>();
  #used: Partial<Record<keyof Used, string | null>> | undefined;
  #asked: Asked | undefined;

  constructor(world: World, json: boolean) {
    this.cwd = world.cwd;
    this.env = world.env;
    this.givenEnv = { ...world.env };
    this.now = world.now;
    this.#world = world;
    this.isJson = json;
  }

  /** The same, with what it says to people on stderr: stdout is for a script. */
  aside(): Context {
    return this.isJson ? this : new Context({ ...this.#world, stdout: this.#world.stderr }, false);
  }

  /** Writes a line for people. With --json, only the JSON document is written. */
  say(text = ''): void {
    if (!this.isJson) this.#world.stdout.write(`${this.clean(text)}\n`);
  }

  /** Writes the JSON document of --json. */
  document(value: object): void {
    if (!this.isJson) return;
    const clean = (_: string, part: unknown) => {
      if (typeof part === 'bigint') return String(part);
      return typeof part === 'string' ? this.clean(part) : part;
    };
    const all = {
      ...value,
      ...(this.#asked && { servers: this.#asked }),
      ...(this.#used && { project: this.#used }),
    };
    this.#world.stdout.write(`${escapeInvisible(JSON.stringify(all, clean, 2))}\n`);
  }

  /** A path relative to the working directory, for messages. */
  shown(path: string): string {
    return relative(this.cwd, path) || '.';
  }

  /** Reports which files are used, because Prisma may use others. Each is reported once. */
  uses(found: Used): void {
    this.#used ??= {};
    for (const part of ['config', 'schema', 'migrations'] as const) {
      const path = found[part];
      if (path === undefined || part in this.#used) continue;
      this.#used[part] = path === null ? null : this.shown(path);
      this.say(this.paint('dim', `${part.padEnd(10)} ${this.#used[part] ?? 'none'}`));
    }
  }

  /** Reports which servers are asked, because the URLs may lead to others than those of the application. */
  asks(asked: Asked): void {
    this.#asked = asked;
    for (const [name, { address, from }] of Object.entries(asked)) {
      this.say(this.paint('dim', `${name.padEnd(10)} ${address} (from ${from})`));
    }
  }

  complain(text: string): void {
    this.#world.stderr.write(`${this.clean(text)}\n`);
  }

  /** Shows these lines in place of what the terminal shows, as far as it has room; without a terminal, behind it. */
  screen(at: Date, lines: readonly string[]): void {
    const { isTTY, rows = 24 } = this.#world.stdout;
    const all = [at.toISOString().replace(/\.\d+/, ''), ...lines.map((line) => this.clean(line))];
    if (!isTTY) {
      this.say(all.join('\n'));
      return;
    }
    const shown = all.length < rows ? all : [...all.slice(0, rows - 2), `${all.length - rows + 2} more lines`];
    // Home; each line without what was there before it; then nothing below. `[?7l`: a long line is cut, and does not wrap.
    const text = shown.map((line) => `${line}\u001B[K\n`).join('');
    this.#world.stdout.write(`\u001B[?7l\u001B[H${text}\u001B[J\u001B[?7h`);
  }

  get #colours(): boolean {
    return this.#world.stdout.isTTY === true && !this.env['NO_COLOR'] && this.env['TERM'] !== 'dumb';
  }

  paint(style: Style, text: string): string {
    // styleText would check the stream of the process, which may be another one.
    return this.#colours ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Removes the URL and its password from all further output, even from messages of other packages. */
  hide(url: string): void {
    this.#hidden.set(url, '<url>');
    // The password alone may be an ordinary word, such as `postgres`, so it is only replaced where a URL has it.
    const password = /^[a-z+]+:\/\/[^/?#]*?(:[^/?#]*@)/i.exec(url)?.[1];
    if (password !== undefined) this.#hidden.set(password, ':<password>@');
  }

  /** A text without what is hidden. */
  clean(text: string): string {
    let clean = text;
    for (const [secret, shown] of this.#hidden) clean = clean.replaceAll(secret, shown);
    return clean;
  }
}
