import { createLogUpdate } from 'log-update';

const FRAME = 200;
const { isTTY, rows } = process.stderr;
/** Some terminals do not know their own height, and log-update would draw nothing on none. */
const isLive = isTTY === true && rows > 0 && process.env['TERM'] !== 'dumb';

/** What is being done, on stderr: one line that is drawn over, or a line for each scenario where that cannot be. */
export class Progress {
  readonly #draw = createLogUpdate(process.stderr);
  readonly #scenarios: number;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #scenario = '';
  #place = 0;
  #step = '';

  constructor(scenarios: number) {
    this.#scenarios = scenarios;
    if (isLive) this.#timer = setInterval(() => this.#draw(this.#line), FRAME);
  }

  begins(scenario: string): void {
    this.#scenario = scenario;
    this.#place++;
    this.#step = '';
    if (!isLive) process.stderr.write(`${this.#line}\n`);
  }

  step(what: string): void {
    this.#step = what;
  }

  /** Takes the line away, so that something else can be written. */
  clear(): void {
    if (isLive) this.#draw.clear();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.clear();
  }

  get #line(): string {
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000);
    const step = this.#step === '' ? '' : ` · ${this.#step}`;
    return `[${this.#place}/${this.#scenarios}] ${this.#scenario}${step} · ${seconds} s`;
  }
}
