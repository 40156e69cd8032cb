import { parseArgs } from 'node:util';

export interface DemoOptions {
  readonly units: number;
  readonly buyers: number;
  /** Whether a page shows the locks meanwhile. */
  readonly board: boolean;
}

export const USAGE = `Usage: npm run demo -- [--units 100] [--buyers 300] [--board]

  --units   how many units there are to sell, 10 to 1000
  --buyers  how many buyers want one, at least as many as units, at most 3000
  --board   show the locks in a browser while the shops sell 1000 units under $withLock
  --help    this text`;

const USUAL = { units: '100', buyers: '300' };
const BOARD = { units: '1000', buyers: '3000' };

/** Why the command line cannot be used; the message is for the user. */
export class UsageError extends Error {}

/** @throws UsageError */
export function parseOptions(args: readonly string[]): DemoOptions | 'help' {
  const { units, buyers, board, help } = parse(args);
  if (help) return 'help';
  // Who looks at a page wants longer to see something.
  const usual = board ? BOARD : USUAL;
  const options = {
    units: whole('units', units ?? usual.units, 10, 1_000),
    buyers: whole('buyers', buyers ?? usual.buyers, 10, 3_000),
    board,
  };
  if (options.buyers < options.units) throw new UsageError('--buyers must not be less than --units.');
  return options;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        units: { type: 'string' },
        buyers: { type: 'string' },
        board: { type: 'boolean', default: false },
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
