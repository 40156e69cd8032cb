/** Captured at import: users run fake timers. */
const { setImmediate: soon, clearImmediate: notSoon } = globalThis;

const lingering = new Set<Lingering>();
let listens = false;

/** Whatever is still kept when the process ends is given back: what is written to a socket then still goes out. */
function atExit(): void {
  for (const one of lingering) one.now();
}

/** Something that is kept to the end of this turn of the event loop, because it may be wanted again before. */
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

  /** It is wanted. */
  stop(): void {
    notSoon(this.#timer);
    lingering.delete(this);
  }

  /** It ends. */
  now(): void {
    this.stop();
    this.#end();
  }
}
