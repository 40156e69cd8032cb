/** A change of one line that a promise rests on. The tests must not let it pass. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Pieces of the file, each of which is there exactly once, and what stands in their place. */
  readonly change: ReadonlyArray<readonly [from: string, to: string]>;
  /** The test files that should fail. */
  readonly tests: readonly string[];
  /** Of these, the tests whose names match. */
  readonly only?: string;
  readonly why: string;
}

/** The file with the change. @throws where it is not what the change was written for. */
export function mutate(text: string, { name, file, change }: Mutant): string {
  return change.reduce((changed, [from, to]) => {
    const [before, after, more] = changed.split(from);
    if (before === undefined || after === undefined || more !== undefined) {
      const times = changed.split(from).length - 1;
      throw new Error(`${name}: this piece is ${times} times in ${file}, and must be there once:\n${from}`);
    }
    return before + to + after;
  }, text);
}
