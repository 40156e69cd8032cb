/** Milliseconds on the monotonic clock, which all processes of a machine share and nobody can set. */
export function monotonic(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
