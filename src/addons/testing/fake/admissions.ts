import { StaleTokenError } from '../../../base/errors.js';
import type { FakeTurn } from './turns.js';

/** A transaction that has been let in. */
export interface FakeAdmission {
  /** One for each key. */
  readonly tokens: readonly bigint[];
  /** The highest of them, which is that of the last key. */
  readonly token: bigint;
  /** It counts from now on. */
  commit(): void;
}

/** What Postgres would have in the row of a key: its last turn that was committed. */
interface Row {
  readonly token: bigint;
  readonly holder: string;
  readonly turns: bigint;
  readonly admittedAt: Date;
}

/** What somebody says who has been let in before. */
export interface Registered {
  readonly keys: readonly string[];
  readonly tokens: readonly bigint[];
  readonly holders: readonly string[];
}

/** Which tokens have been given to whom. A turn counts when its transaction has committed. */
export class Admissions {
  readonly #rows = new Map<string, Row>();
  #last = 0n;

  /** With new tokens. */
  draw({ keys, holders }: Pick<FakeTurn, 'keys' | 'holders'>): FakeAdmission {
    return this.#admission(
      keys,
      keys.map(() => ++this.#last),
      holders,
    );
  }

  /** With the tokens of a handle. */
  again({ keys, tokens, holders }: Registered): FakeAdmission {
    return this.#admission(keys, tokens, holders);
  }

  /** @throws StaleTokenError if somebody else has been let in since. */
  check({ keys, tokens, holders }: Registered): void {
    for (const [at, key] of keys.entries()) {
      const row = this.#rows.get(key);
      const token = tokens[at] as bigint;
      if (row?.token === token && row.holder === holders[at]) continue;
      const reason = row === undefined ? 'forgotten' : 'superseded';
      throw new StaleTokenError(key, token, undefined, { reason, ofHandle: true });
    }
  }

  /** What is known of a key. */
  of(key: string): {
    readonly token: bigint | undefined;
    readonly turns: bigint;
    readonly admittedAt: Date | undefined;
  } {
    const { token, turns = 0n, admittedAt } = this.#rows.get(key) ?? {};
    return { token, turns, admittedAt };
  }

  #admission(keys: readonly string[], tokens: readonly bigint[], holders: readonly string[]): FakeAdmission {
    const admittedAt = new Date();
    const commit = () => {
      for (const [at, key] of keys.entries()) {
        const [token, holder] = [tokens[at] as bigint, holders[at] as string];
        this.#rows.set(key, { token, holder, turns: this.of(key).turns + 1n, admittedAt });
      }
    };
    return { tokens, token: tokens.at(-1) as bigint, commit };
  }
}
