import { AsyncLocalStorage } from 'node:async_hooks';

/** A connection with a BEGIN that has not been sent: it goes along with the first statement. */
export interface Line {
  query(
    text: string,
    values: readonly unknown[],
  ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
}

/**
 * The transaction of a lock, while it is being opened. The driver's connection is deep inside the database client;
 * one of ours leaves itself here as it is told to begin.
 */
export class Opening {
  #line: Line | undefined;
  #closed = false;

  /** Whether a connection may still leave itself here: the first that begins, and nobody once the work runs. */
  get isOpen(): boolean {
    return this.#line === undefined && !this.#closed;
  }

  set line(line: Line) {
    this.#line = line;
  }

  /** What was left here. What the work itself begins on other connections is none of ours. */
  close(): Line | undefined {
    this.#closed = true;
    // Once: an extension that repeats the transaction does so on another connection.
    const line = this.#line;
    this.#line = undefined;
    return line;
  }
}

/** On `globalThis`: the driver's client may come from another copy of this package than the extension does. */
const SLOT = Symbol.for('prisma-extension-fenced-lock.opening');
const slots = globalThis as { [SLOT]?: AsyncLocalStorage<Opening> };
slots[SLOT] ??= new AsyncLocalStorage<Opening>();

export const openings = slots[SLOT];
