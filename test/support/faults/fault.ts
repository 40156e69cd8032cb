import { setTimeout as sleep } from 'node:timers/promises';
import type { Actor } from './actor.js';
import type { Stage } from './servers-and-workers.js';

/** What may be hurt by one fault at a time: two that end each other would both be half done. */
export type Place = 'redis' | 'postgres' | 'worker' | 'postgres line' | 'redis line' | 'operator';

export interface Fault {
  readonly name: string;
  readonly place: Place;
  /** Why it cannot strike on this machine, in a sentence; undefined if it can. */
  unavailable?(): string | undefined;
  /**
   * Hurts, and heals what does not heal by itself; `ms` is for how long, where that can be chosen. Resolves to
   * false if it never came to what it waited for.
   */
  strike(stage: Stage, actor: Actor, ms: number): Promise<boolean>;
}

/** Past every lease of the workload; milliseconds. */
export const LONG = 700;

/** A fault that begins at once and ends after a while. */
export function lasting(
  name: string,
  place: Place,
  begin: (stage: Stage, actor: Actor, ms: number) => unknown,
  end: (stage: Stage, actor: Actor) => unknown,
): Fault {
  return {
    name,
    place,
    async strike(stage, actor, ms) {
      await begin(stage, actor, ms);
      await sleep(ms);
      await end(stage, actor);
      return true;
    },
  };
}

/** A fault that is over when it has begun. */
export function sudden(name: string, place: Place, hurt: (stage: Stage, actor: Actor) => Promise<unknown>): Fault {
  return {
    name,
    place,
    async strike(stage, actor) {
      await hurt(stage, actor);
      return true;
    },
  };
}
