/** The numbers of up to `count` rounds: one at least, and none that would begin after `budget` ms. */
export function* rounds(count: number, budget: number): Generator<number> {
  const from = performance.now();
  for (let round = 0; round < count && (round === 0 || performance.now() - from < budget); round++) yield round;
}
