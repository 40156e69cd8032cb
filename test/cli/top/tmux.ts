import { execFileSync, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { eventually } from '../../support/eventually.js';
import { ROOT } from '../project.js';

/** Why there can be no terminal, or `undefined`. */
export const noTmux =
  spawnSync('tmux', ['-V']).status === 0 ? undefined : 'tmux is not installed (apt-get install tmux)';

/** A shell in a terminal of its own, which people would sit at. */
export class TerminalPane implements AsyncDisposable {
  readonly #socket = `fenced-lock-${randomUUID()}`;

  constructor(env: Readonly<Record<string, string>>) {
    const set = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
    this.#tmux('-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '20', ...set, 'PS1=prompt: sh');
  }

  /** Types a command line of `fenced-lock`. */
  start(...args: string[]): void {
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
    const words = [process.execPath, '--import', tsx, `${ROOT}src/cli/main.ts`, ...args];
    this.type(`${words.map((word) => `'${word}'`).join(' ')}; echo ended with $?`);
    this.press('Enter');
  }

  type(text: string): void {
    this.#tmux('send-keys', '-l', text);
  }

  /** By the names of tmux, such as `Enter` and `Down`. */
  press(...keys: string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  resize(width: number, height: number): void {
    this.#tmux('resize-window', '-x', String(width), '-y', String(height));
  }

  /** What is on the screen, once it is so. */
  screen(what: string, wanted: (lines: readonly string[]) => boolean): Promise<readonly string[]> {
    return eventually(what, async () => {
      const lines = this.#tmux('capture-pane', '-p').split('\n').slice(0, -1);
      return wanted(lines) && lines;
    });
  }

  /** Whether the other screen is shown, whether there is a cursor, and whether long lines go on in the next one. */
  get modes(): { readonly other: boolean; readonly cursor: boolean; readonly wraps: boolean } {
    const [other, cursor, wraps] = this.#tmux('display', '-p', '#{alternate_on} #{cursor_flag} #{wrap_flag}')
      .trim()
      .split(' ')
      .map((flag) => flag === '1') as [boolean, boolean, boolean];
    return { other, cursor, wraps };
  }

  /** The process that has the terminal. */
  get pid(): number {
    const shell = this.#tmux('display', '-p', '#{pane_pid}').trim();
    return Number(execFileSync('ps', ['-o', 'pid=', '--ppid', shell], { encoding: 'utf8' }).trim());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#tmux('kill-server');
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...args], { encoding: 'utf8' });
  }
}
