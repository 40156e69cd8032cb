import { Command, InvalidArgumentError } from 'commander';
import type { Contestant } from './contestants/contestant.js';
import { contestantOf } from './contestants/index.js';

/** Their names, with commas between them. */
export function contestantsIn(text: string): Contestant[] {
  try {
    return text.split(',').map(contestantOf);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('It must be a whole number.');
  return number;
}

/** A command that exits with 2 if it cannot read its arguments, as `npx fenced-lock` does. */
export function command(name: string): Command {
  return new Command(name).exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}
