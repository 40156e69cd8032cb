import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { dropOldest } from '../base/drop-oldest.js';
import { codeOf, InvalidOptionError, tryRead } from '../base/errors.js';
import type { LockMessage, LockOutcome, TransactionMessage } from '../base/messages.js';
import { processWide } from '../base/process-wide.js';

export interface RecorderOptions {
  /** Turns that are kept of each key, 1 to 10 000. Default: 16. */
  readonly turns?: number | undefined;
  /** How many keys have their turns kept, 1 to 100 000. The keys used last stay. Default: 1 000. */
  readonly keys?: number | undefined;
}

/** What a process knows of a turn of its own. */
export interface RecordedTurn {
  readonly attempt: string;
  /** The number in the key's row; known for the last of several keys alone. */
  readonly turn: bigint | undefined;
  readonly token: bigint;
  readonly admittedAt: Date;
  /** Milliseconds from the admission to the outcome. */
  readonly duration: number;
  readonly outcome: LockOutcome;
  /** The name of the client that it was taken by. */
  readonly process: string;
  readonly operation: LockMessage['operation'];
  /** The code of the error that ended it, or the name of the error's class. */
  readonly error: string | undefined;
}

const CHANNEL = 'tracing:fenced-lock:transaction:asyncEnd';

const recorders = processWide('recorders', () => new Set<Recorder>());

/**
 * Keeps the last turns of this process in memory, for `$locks.history`. Returns the function that ends it and forgets them.
 *
 * @throws InvalidOptionError
 */
export function recordLockHistory({ turns = 16, keys = 1_000 }: RecorderOptions = {}): () => void {
  const recorder = new Recorder(count('turns', turns, 10_000), count('keys', keys, 100_000));
  const hear = (message: unknown) => recorder.hear(message as TransactionMessage);
  recorders.add(recorder);
  subscribe(CHANNEL, hear);
  return () => {
    unsubscribe(CHANNEL, hear);
    recorders.delete(recorder);
  };
}

/** What is recorded of a key, the oldest first; `undefined` where nobody records. */
export function recordedTurns(roomId: number, key: string): readonly RecordedTurn[] | undefined {
  const found = new Map<string, RecordedTurn>();
  for (const recorder of recorders) for (const turn of recorder.turns(roomId, key)) found.set(turn.attempt, turn);
  return recorders.size === 0 ? undefined : [...found.values()];
}

/** A ring of turns for each key. */
class Recorder {
  readonly #turns: number;
  readonly #keys: number;
  readonly #byKey = new Map<string, RecordedTurn[]>();

  constructor(turns: number, keys: number) {
    this.#turns = turns;
    this.#keys = keys;
  }

  hear({ call, attempt, turn, tokens, admittedAt, duration = 0, outcome, error }: TransactionMessage): void {
    // An attempt that was not admitted is not a turn.
    if (attempt === undefined || outcome === undefined || admittedAt === undefined) return;
    const { operation, keys, roomId, process } = call;
    for (const [at, key] of keys.entries()) {
      const isLast = at === keys.length - 1;
      this.#add(nameOf(roomId, key), {
        attempt,
        turn: isLast ? turn : undefined,
        token: tokens?.[at] ?? 0n,
        admittedAt,
        duration,
        outcome,
        process,
        operation,
        error: error === undefined ? undefined : codeOrName(error),
      });
    }
  }

  turns(roomId: number, key: string): readonly RecordedTurn[] {
    return this.#byKey.get(nameOf(roomId, key)) ?? [];
  }

  #add(name: string, turn: RecordedTurn): void {
    const ring = this.#byKey.get(name) ?? [];
    // Move the key to the end: the first key of the map is the one used longest ago.
    this.#byKey.delete(name);
    this.#byKey.set(name, ring);
    ring.push(turn);
    if (ring.length > this.#turns) ring.shift();
    if (this.#byKey.size > this.#keys) dropOldest(this.#byKey);
  }
}

function nameOf(roomId: number, key: string): string {
  return `${roomId} ${key}`;
}

function codeOrName(error: unknown): string {
  const code = codeOf(error);
  if (typeof code === 'string') return code;
  return tryRead(() => error instanceof Error && error.name) || typeof error;
}

function count(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new InvalidOptionError(name, `must be a whole number from 1 to ${most}.`);
}
