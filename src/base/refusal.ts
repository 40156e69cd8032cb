import { randomUUID } from 'node:crypto';

/** A write that was refused because its token was stale, as its process notes it. People read it; nothing depends on it. */
export interface Refusal {
  /** Random. Whoever hears of the refusal more than once counts it once. */
  readonly id: string;
  /** The key whose token was refused. */
  readonly key: string;
  readonly token: string;
  /** The higher token that the row carries, where it is known. */
  readonly fence?: string;
  /** The model of the row, or its table; absent if a handle's token was refused before any write. */
  readonly model?: string;
  /** The `reason` of the StaleTokenError. */
  readonly reason: string;
}

/** A refusal that the store has kept. */
export interface NotedRefusal extends Refusal {
  /** The name of the process whose write was refused, where it is known. */
  readonly process?: string;
  /** Milliseconds since it was noted, by the clock of the store. */
  readonly ago: number;
}

/** How many refusals a store keeps, and for how long; milliseconds. */
export const MOST_REFUSALS = 100;
export const REFUSALS_KEPT = 3_600_000;

/** A StaleTokenError, also one of another copy of this package. */
interface Stale {
  readonly key: string | undefined;
  readonly token: bigint;
  readonly fence: bigint | undefined;
  readonly model: string | undefined;
  readonly reason: string;
}

/** By `Symbol.for`, because a process may have loaded this package twice, as ESM and as CommonJS. */
const ID = Symbol.for('prisma-extension-fenced-lock.refusal');

/** Describes the refusal that an error tells of. Each call for the same error returns the same id. */
export function refusalOf(error: Stale): Refusal {
  const { key = '', token, fence, model, reason } = error;
  const known = (error as { readonly [ID]?: string })[ID];
  const id = known ?? randomUUID();
  // Not enumerable, so that neither logs nor comparisons of errors show it. A frozen error stays as it is.
  if (known === undefined) Reflect.defineProperty(error, ID, { value: id });
  return {
    id,
    key,
    token: String(token),
    ...(fence !== undefined && { fence: String(fence) }),
    ...(model !== undefined && { model }),
    reason,
  };
}

/** One sentence about a refusal. It may have any character that a name of a model in the database has. */
export function sentenceOf({ token, fence, model, reason }: Refusal): string {
  switch (reason) {
    case 'superseded':
      return `The key has a newer holder than the one with the token ${token}.`;
    case 'forgotten':
      return `Postgres has no row of the key any more, in which the token ${token} was registered.`;
    default: {
      const carries = fence === undefined ? 'a higher token' : `the token ${fence}`;
      return `A row of ${model ?? 'a table'} carries ${carries}, so the write with the token ${token} was refused.`;
    }
  }
}
