import process from 'node:process';
import { emitKeypressEvents } from 'node:readline';
import { styleText } from 'node:util';
import type { TerminalInput, TerminalOutput } from '../context.js';
import type { KeyPress } from './state.js';
import type { Line } from './view.js';

/** The other screen, without a cursor; a line that is too long is cut off, and not continued. */
const ENTER = '\u001B[?1049h\u001B[?25l\u001B[?7l';
const LEAVE = '\u001B[0m\u001B[?7h\u001B[?25h\u001B[?1049l';
const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;

/** Takes over the terminal until `restore`, which is also done when the process ends in another way. */
export class Terminal {
  readonly #input: TerminalInput;
  readonly #output: TerminalOutput;
  readonly #colours: boolean;
  readonly #onKey: (text: string | undefined, press: KeyPress) => void;
  readonly #onResize: () => void;
  readonly #onEnd: () => void;
  readonly #onExit = () => this.restore();
  #isTaken = false;

  constructor(
    input: TerminalInput,
    output: TerminalOutput,
    colours: boolean,
    hear: { key(press: KeyPress): void; resize(): void; end(): void },
  ) {
    this.#input = input;
    this.#output = output;
    this.#colours = colours;
    this.#onKey = (text, press) => hear.key({ ...press, sequence: press.sequence ?? text });
    this.#onResize = () => hear.resize();
    this.#onEnd = () => hear.end();
  }

  get size(): { readonly width: number; readonly height: number } {
    return { width: this.#output.columns ?? 80, height: this.#output.rows ?? 24 };
  }

  take(): void {
    this.#isTaken = true;
    process.on('exit', this.#onExit);
    for (const signal of SIGNALS) process.on(signal, this.#onEnd);
    emitKeypressEvents(this.#input);
    this.#input.setRawMode?.(true);
    this.#input.on('keypress', this.#onKey);
    this.#input.on('end', this.#onEnd);
    this.#output.on?.('resize', this.#onResize);
    this.#input.resume();
    this.#output.write(ENTER);
  }

  draw(lines: readonly Line[]): void {
    if (!this.#isTaken) return;
    const text = lines.map((line) => `${this.#styled(line)}\u001B[K`).join('\r\n');
    this.#output.write(`\u001B[H${text}\u001B[J`);
  }

  /** Idempotent. */
  restore(): void {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    this.#output.write(LEAVE);
    this.#input.setRawMode?.(false);
    this.#input.off('keypress', this.#onKey);
    this.#input.off('end', this.#onEnd);
    this.#input.pause();
    this.#output.off?.('resize', this.#onResize);
    process.off('exit', this.#onExit);
    for (const signal of SIGNALS) process.off(signal, this.#onEnd);
  }

  #styled({ text, emphasis }: Line): string {
    if (emphasis === 'plain') return text;
    // Which row is selected is to be seen without colours, too.
    if (!this.#colours && emphasis !== 'inverse') return text;
    return styleText(emphasis, text === '' ? ' ' : text, { validateStream: false });
  }
}
