/** Captured at import, because a user's tests may replace the globals with fake timers. */
const { setImmediate: soon, clearImmediate: notSoon } = globalThis;

const lingering = new Set<Lingering>();
let listens = false;

/** Releases lingering leases when the process exits: a command that is written to the socket then is still sent. */
function atExit(): void {
  for (const one of lingering) one.now();
}

/** Delays an action to the end of the event loop's turn, unless it is stopped before. */
export class Lingering {
  readonly #end: () => void;
  readonly #timer: NodeJS.Immediate;

  constructor(end: () => void) {
    this.#end = end;
    this.#timer = soon(() => this.now());
    if (!listens) process.on('exit', atExit);
    listens = true;
    lingering.add(this);
  }

  stop(): void {
    notSoon(this.#timer);
    lingering.delete(this);
  }

  /** Runs the action at once. */
  now(): void {
    this.stop();
    this.#end();
  }
}
