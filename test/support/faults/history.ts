/** What a caller was told. `unknown`: by CommitUnknownError and nothing else. */
export type Outcome = 'ok' | 'error' | 'unknown';

/** One of the processes that have had a handle. */
export interface HandlePart {
  /** The same wherever it is. */
  readonly id: string;
  /** How often it had been resumed elsewhere before this process had it. */
  readonly resumed: number;
}

/** One call of one caller. All times are milliseconds on the machine's monotonic clock, the same for all processes. */
export interface Operation {
  readonly id: string;
  /** The process; one that was restarted after a kill has a new name. */
  readonly worker: string;
  readonly caller: string;
  readonly keys: readonly string[];
  readonly way: string;
  /** Whose transaction it is, where it is one of a handle's. */
  readonly handle?: HandlePart;
  readonly askedAt: number;
  /** Missing where the process was killed first, and where the call never settled. */
  readonly told?: { readonly at: number; readonly outcome: Outcome; readonly code?: string };
}

/** A row that a committed transaction has left. */
export interface Entry {
  readonly operation: string;
  readonly key: string;
  readonly token: bigint;
  readonly before: number;
  readonly after: number;
}

/** A key at the end. */
export interface KeyEnd {
  readonly key: string;
  readonly first: number;
  readonly last: number;
}

export interface Strike {
  readonly fault: string;
  readonly target: string;
  readonly from: number;
  readonly to: number;
  /** It never came to what it waited for, or somebody else was at its target. */
  readonly missed: boolean;
}

/** Something that must not be: an unhandled rejection, a worker that ended by itself. */
export interface Trouble {
  readonly worker: string;
  readonly at: number;
  readonly what: string;
}

/** Calls of the package's events, by their type. */
export type EventCounts = Readonly<Record<string, number>>;

/** A time without faults, in which everybody has to get on. */
export interface Calm {
  readonly from: number;
  readonly callers: readonly string[];
}

export interface History {
  readonly from: number;
  readonly to: number;
  readonly keys: readonly KeyEnd[];
  readonly operations: readonly Operation[];
  readonly entries: readonly Entry[];
  readonly strikes: readonly Strike[];
  readonly calms: readonly Calm[];
  readonly troubles: readonly Trouble[];
  readonly events: EventCounts;
  /** Workers that were killed on purpose: what they had asked for may have no answer. */
  readonly killed: readonly string[];
  /** What was still there when everybody had rested for longer than any lease. */
  readonly left: { readonly idleInTransaction: readonly string[]; readonly leases: readonly string[] };
}
