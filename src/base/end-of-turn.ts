import { now } from './clock.js';

/** Captured at import, because a user's tests may replace the globals with fake timers. */
const { setImmediate: soon, clearImmediate: notSoon } = globalThis;

const delayed = new Set<EndOfTurn>();
let listens = false;

/** Runs what is delayed when the process exits: a command that is written to a socket then is still sent. */
function atExit(): void {
  for (const one of delayed) one.now();
}

/** Runs at once what is delayed for this key, by whatever client of the process. */
export function runDelayed(key: string): void {
  for (const one of delayed) if (one.key === key) one.now();
}

/** Delays an action to the end of the event loop's turn, unless it is stopped before. */
export class EndOfTurn {
  readonly key: string;
  readonly #end: (after: number) => void;
  readonly #timer: NodeJS.Immediate;
  readonly #since = now();

  /** @param end gets the milliseconds that it was delayed by. */
  constructor(key: string, end: (after: number) => void) {
    this.key = key;
    this.#end = end;
    this.#timer = soon(() => this.now());
    if (!listens) process.on('exit', atExit);
    listens = true;
    delayed.add(this);
  }

  /** Milliseconds since the delay began. */
  get age(): number {
    return now() - this.#since;
  }

  stop(): void {
    notSoon(this.#timer);
    delayed.delete(this);
  }

  /** Runs the action at once. */
  now(): void {
    this.stop();
    this.#end(this.age);
  }
}
