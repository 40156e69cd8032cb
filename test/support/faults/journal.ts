import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { monotonic } from './clock.js';
import type { HandlePart, Outcome } from './history.js';

/** What a worker notes, in order. */
export type Note = { readonly at: number } & (
  | {
      readonly note: 'asked';
      readonly id: string;
      readonly caller: string;
      readonly keys: readonly string[];
      readonly way: string;
      readonly handle?: HandlePart;
    }
  | { readonly note: 'told'; readonly id: string; readonly outcome: Outcome; readonly code?: string }
  | { readonly note: 'event'; readonly type: string }
  | { readonly note: 'trouble'; readonly what: string }
);

type WithoutTime<N> = N extends Note ? Omit<N, 'at'> : never;

/** One line a note. Written by the time `write` returns: what the kernel has, SIGKILL does not take back. */
export class Journal {
  readonly #file: number;

  constructor(directory: string, worker: string) {
    this.#file = openSync(join(directory, worker), 'a');
  }

  write(note: WithoutTime<Note>): void {
    writeSync(this.#file, `${JSON.stringify({ at: monotonic(), ...note })}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** The notes of each worker. */
export function readJournals(directory: string): Map<string, Note[]> {
  return new Map(readdirSync(directory).map((worker) => [worker, readNotes(join(directory, worker))]));
}

function readNotes(path: string): Note[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Note);
}
