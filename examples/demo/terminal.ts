import pc from 'picocolors';

const { isTTY, rows } = process.stdout;

/**
 * Whether lines can be drawn over; elsewhere every line is written once, without control codes. Some terminals do not
 * know their own height, and log-update would draw nothing on none.
 */
export const isLive = isTTY === true && rows > 0 && process.env['TERM'] !== 'dumb';

const noColor = process.env['NO_COLOR'];

/** picocolors' own guess colours a pipe too if `CI` is set. */
export const colors = pc.createColors(isLive && (noColor === undefined || noColor === ''));

export function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}
