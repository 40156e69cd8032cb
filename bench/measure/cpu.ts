/** CPU that this process has used, its threads for garbage and for compiling included; ms. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
