import pc from 'picocolors';

/** Whether lines can be drawn over; elsewhere every line is written once, without control codes. */
export const isLive = process.stdout.isTTY === true && process.env['TERM'] !== 'dumb';

const noColor = process.env['NO_COLOR'];

/** picocolors' own guess colours a pipe too if `CI` is set. */
export const colors = pc.createColors(isLive && (noColor === undefined || noColor === ''));

export function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}
