/** Now, in ms, by a monotonic clock that all processes of the machine share. */
export function stamp(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
