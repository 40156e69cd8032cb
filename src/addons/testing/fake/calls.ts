/** What became of a call so far. */
export type FakeOutcome =
  | 'waiting'
  | 'working'
  | 'held'
  | 'released'
  | 'lost'
  | 'committed'
  | 'rolled back'
  | 'unknown'
  | 'not acquired';

/** One call, as a test looks at it. */
export interface FakeCall {
  readonly method: '$withLock' | '$tryWithLock' | '$oncePer' | '$lock' | '$resumeLock' | '$transaction';
  /** In the order in which they are taken. */
  readonly keys: readonly string[];
  /** Those that somebody else had when the call came to them. */
  readonly waitedFor: readonly string[];
  /** Rises from turn to turn; `undefined` before its turn. */
  readonly token: bigint | undefined;
  /** `held`, `released` and `lost`: of a handle. */
  readonly outcome: FakeOutcome;
  /** Why it was rolled back or is unknown, or why the lock was not had, or was lost. */
  readonly error: unknown;
}

/** A call that is under way. */
export class CallRecord implements FakeCall {
  readonly method: FakeCall['method'];
  readonly keys: readonly string[];
  readonly waitedFor: string[] = [];
  token: bigint | undefined;
  outcome: FakeOutcome = 'waiting';
  error: unknown;

  constructor(method: FakeCall['method'], keys: readonly string[]) {
    this.method = method;
    this.keys = keys;
  }

  begin(token: bigint, outcome: FakeOutcome = 'working'): void {
    this.token = token;
    this.outcome = outcome;
  }

  end(outcome: FakeOutcome, error?: unknown): void {
    this.outcome = outcome;
    this.error = error;
  }

  /** It has failed. That is said here where its function has not begun; its outcome says the rest. */
  failed(error: unknown): void {
    if (this.outcome === 'waiting') this.end('not acquired', error);
  }
}
