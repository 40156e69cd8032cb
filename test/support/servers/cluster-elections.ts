/** After five seconds a replica gives up a failover that an operator has ordered; milliseconds, with a margin. */
const GIVEN_UP_AFTER = 6_000;
/**
 * A node of Redis 7.0 that is elected, demoted by a failover, and then asked to take over once more counts the votes of its
 * first election again, if that was less than four seconds ago (twice the time for an election). It takes the slots with
 * its old epoch, the others refuse them, and from then on nobody has them. Milliseconds, with a margin.
 */
const VOTES_COUNT_FOR = 4_500;

/** What is still to come of the takeovers in a Cluster that looks whole. */
export class Elections {
  /** When each node was first seen as a new master, by its port. */
  readonly #elected = new Map<number, number>();
  #masters: readonly number[] = [];
  #ordered: { readonly port: number; readonly givenUpAt: number } | undefined;

  /** An operator has told this replica to take over. For a moment nothing shows it. */
  ordered(port: number): void {
    this.#ordered = { port, givenUpAt: performance.now() + GIVEN_UP_AFTER };
  }

  /** Whether the next takeover begins with votes of its own. */
  areOver(masters: readonly number[], replicas: readonly number[]): boolean {
    const now = performance.now();
    if (this.#masters.length > 0) {
      for (const port of masters) if (!this.#masters.includes(port)) this.#elected.set(port, now);
    }
    this.#masters = masters;
    if (this.#ordered && now < this.#ordered.givenUpAt && !masters.includes(this.#ordered.port)) return false;
    this.#ordered = undefined;
    return replicas.every((port) => now - (this.#elected.get(port) ?? Number.NEGATIVE_INFINITY) > VOTES_COUNT_FOR);
  }
}
