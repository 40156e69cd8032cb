import { parseArgs } from 'node:util';

export interface DemoOptions {
  readonly units: number;
  readonly buyers: number;
}

export const USAGE = `Usage: npm run demo -- [--units 100] [--buyers 300]

  --units   how many units there are to sell, 10 to 1000
  --buyers  how many buyers want one, at least as many as units, at most 3000
  --help    this text`;

/** Why the command line cannot be used; the message is for the user. */
export class UsageError extends Error {}

/** @throws UsageError */
export function parseOptions(args: readonly string[]): DemoOptions | 'help' {
  const { units, buyers, help } = parse(args);
  if (help) return 'help';
  const options = { units: whole('units', units, 10, 1_000), buyers: whole('buyers', buyers, 10, 3_000) };
  if (options.buyers < options.units) throw new UsageError('--buyers must not be less than --units.');
  return options;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        units: { type: 'string', default: '100' },
        buyers: { type: 'string', default: '300' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, not '${text}'.`);
  }
  return value;
}
