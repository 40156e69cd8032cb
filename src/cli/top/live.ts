import type { TerminalInput, TerminalOutput } from '../context.js';
import { advised, messageOf, Problem } from '../problem.js';
import { visible } from '../visible.js';
import { Unanswered } from './asking.js';
import type { Sample, Sampler } from './sample.js';
import { pressed, type Release, START, type TopState } from './state.js';
import { Terminal } from './terminal.js';
import { type AskedPlace, screen, timeOf } from './view.js';

export interface LiveOptions {
  readonly input: TerminalInput;
  readonly output: TerminalOutput;
  readonly colours: boolean;
  /** Between two samples; ms. */
  readonly interval: number;
  readonly filter: string;
  /** The servers, without users and passwords. */
  readonly asked: readonly AskedPlace[];
  now(): Date;
  /** Takes out what nobody is to see. */
  clean(text: string): string;
  /** Takes a key from this holder, and from no later one; resolves to what was done. */
  release(release: Release): Promise<string>;
  /** Prints a line after the view was left. */
  report(text: string): void;
}

/** The live view: samples, draws, and does what the keyboard says, until it is left. */
export class LiveView {
  readonly #sampler: Sampler;
  readonly #options: LiveOptions;
  readonly #terminal: Terminal;
  #state: TopState;
  #sample: Sample = { rows: [], missing: [], refused: undefined };
  #toRelease: Release[] = [];
  #quit = false;
  #releasing: string | undefined;
  /** What became of releases that ended after the view was left. */
  readonly #late: string[] = [];
  #failure: unknown;
  /** When the last good sample ended. */
  #sampledAt: Date | undefined;
  /** Why the sample is not the present one, since when, and at which server. */
  #failing: { readonly server: string; readonly since: Date; readonly reason: string } | undefined;
  #wake: () => void = () => {};
  #leave: () => void = () => {};

  constructor(sampler: Sampler, options: LiveOptions) {
    this.#sampler = sampler;
    this.#options = options;
    this.#state = { ...START, filter: options.filter };
    this.#terminal = new Terminal(options.input, options.output, options.colours, {
      key: (press) => {
        const { state, action } = pressed(this.#state, this.#sample.rows, press);
        this.#state = state;
        if (action?.type === 'quit') this.#end();
        if (action?.type === 'release') this.#toRelease.push(action);
        if (action !== undefined) this.#wake();
        this.#draw();
      },
      resize: () => this.#draw(),
      end: () => this.#end(),
    });
  }

  /** @throws Problem if a release fails whose result the view does not show any more */
  async run(): Promise<void> {
    this.#terminal.take();
    try {
      const left = new Promise<void>((resolve) => {
        this.#leave = resolve;
      });
      const loop = this.#loop();
      // Whoever leaves does not wait for a server that does not answer.
      loop.catch(() => {});
      await Promise.race([left, loop]);
    } finally {
      this.#terminal.restore();
    }
    for (const text of this.#late) this.#options.report(text);
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#releasing !== undefined) {
      throw new Problem(`Left before it was known whether ${visible(this.#releasing)} was taken: look at it again.`);
    }
    const [asked] = this.#toRelease;
    if (asked !== undefined) throw new Problem(`Left before ${visible(asked.key)} was taken.`);
  }

  #end(): void {
    const isSecond = this.#quit;
    this.#quit = true;
    // A key that was confirmed is taken first, unless that does not end.
    const isBusy = this.#releasing !== undefined || this.#toRelease.length > 0;
    if (!isBusy || isSecond) this.#leave();
    this.#wake();
  }

  /** One thing after the other: all of it goes over one connection. */
  async #loop(): Promise<void> {
    while (!this.#quit || this.#toRelease.length > 0) {
      const release = this.#toRelease.shift();
      if (release !== undefined) await this.#release(release);
      if (this.#quit) continue;
      try {
        this.#sample = await this.#sampler.sample();
        this.#sampledAt = this.#options.now();
        this.#failing = undefined;
      } catch (error) {
        const { server, cause } = error instanceof Unanswered ? error : { server: 'The servers', cause: error };
        // What does not answer at the start is more likely a wrong URL or a missing right than a restart.
        if (this.#sampledAt === undefined) throw cause;
        const since = this.#failing?.server === server ? this.#failing.since : this.#options.now();
        this.#failing = { server, since, reason: reasonOf(cause) };
      }
      this.#draw();
      if (this.#toRelease.length === 0 && !this.#quit) await this.#pause();
    }
  }

  async #release(release: Release): Promise<void> {
    this.#say(`Taking ${visible(release.key)} ...`);
    this.#releasing = release.key;
    try {
      const text = await this.#options.release(release);
      if (this.#quit) this.#late.push(text);
      this.#say(text);
    } catch (error) {
      if (this.#quit) this.#failure ??= error;
      this.#say(advised(error));
    } finally {
      this.#releasing = undefined;
    }
  }

  /** What is wrong with the sample that is shown. */
  get #trouble(): string {
    if (this.#failing !== undefined) {
      const { server, since, reason } = this.#failing;
      return `${server} cannot be asked since ${timeOf(since)}: ${reason}; trying again`;
    }
    const [why] = this.#sample.missing;
    return why === undefined ? '' : `Not all keys are here. ${why}`;
  }

  #say(message: string): void {
    this.#state = { ...this.#state, message: this.#harmless(message) };
    this.#draw();
  }

  /** On one line, and nothing that the terminal would obey. */
  #harmless(text: string): string {
    return this.#options.clean(text).replaceAll(/[\p{C}\p{Z}]+/gu, ' ');
  }

  #draw(): void {
    if (this.#quit) return;
    const { asked, now } = this.#options;
    const lines = screen(this.#sample, this.#state, {
      ...this.#terminal.size,
      at: this.#sampledAt ?? now(),
      isOld: this.#failing !== undefined,
      trouble: this.#harmless(this.#trouble),
      asked,
    });
    this.#terminal.draw(lines);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.interval);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The sentence already names the server. */
function reasonOf(error: unknown): string {
  return messageOf(error).replace(/^(?:Redis|PostgreSQL) at \S+?(?: cannot be reached)?: /, '');
}
