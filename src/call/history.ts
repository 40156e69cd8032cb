import type { LockMessage, LockOutcome } from '../base/messages.js';
import type { Query } from '../database/database.js';
import { LAST_TURNS } from '../database/sql.js';
import { type RecordedTurn, recordedTurns } from './recorder.js';

/** One turn of a key. What nobody keeps is `undefined`. */
export interface LockTurn {
  /** The random id of its transaction. */
  readonly attempt: string;
  /** The number of the turn in the key's row, which counts what has committed. */
  readonly turn: bigint | undefined;
  /** Whether Postgres still remembers it: then it has committed. */
  readonly inPostgres: boolean;
  readonly outcome: LockOutcome;
  /** Known of the last turn that committed, and of those that this process has recorded. */
  readonly token: bigint | undefined;
  /** As `token`. Postgres's own, of the last turn, is later where it is that of an open handle. */
  readonly admittedAt: Date | undefined;
  /** Milliseconds from the admission to the outcome; of recorded turns alone, as what follows. */
  readonly duration: number | undefined;
  /** The `name` of the client, by default `hostname:pid`. */
  readonly process: string | undefined;
  readonly operation: LockMessage['operation'] | undefined;
  /** Why it was rolled back: a code such as `LOCK_LOST`, or the name of the error's class. */
  readonly error: string | undefined;
}

export interface LockHistory {
  readonly key: string;
  /** Turns since the key's row was made. */
  readonly turns: bigint;
  /** Whether `recordLockHistory()` is at work in this process. */
  readonly recorded: boolean;
  /** The newest first. */
  readonly last: readonly LockTurn[];
}

/** How often to read at most, if turns commit during a read. */
const MOST_READS = 5;

/** The last turns of a key, as Postgres remembers them and this process has recorded its own. */
export async function history(query: Query, roomId: number, key: string): Promise<LockHistory> {
  const { turns, attempts, token, admittedAt } = await remembered(query, key);
  const recorded = recordedTurns(roomId, key);
  const own = new Map(recorded?.map((turn) => [turn.attempt, turn]));
  const last = attempts.map((attempt, at): LockTurn => {
    const known = own.get(attempt);
    own.delete(attempt);
    const first = at === 0 ? { token, admittedAt } : { token: undefined, admittedAt: undefined };
    const turn = turns - BigInt(at);
    const base = known ? ofProcess(known) : { ...NOTHING, ...first };
    return { ...base, attempt, turn, inPostgres: true, outcome: 'committed' };
  });
  for (const turn of own.values()) insert(last, ofProcess(turn));
  return { key, turns, recorded: recorded !== undefined, last };
}

const NOTHING = { duration: undefined, process: undefined, operation: undefined, error: undefined };

interface Remembered {
  readonly turns: bigint;
  /** The newest first. */
  readonly attempts: readonly string[];
  /** Of the last turn. */
  readonly token: bigint | undefined;
  readonly admittedAt: Date | undefined;
}

async function remembered(query: Query, key: string): Promise<Remembered> {
  for (let reads = 1; ; reads++) {
    const [row] = await query(LAST_TURNS, [key]);
    const { attempts, turns, seen, token, admitted_at } = (row ?? {}) as {
      readonly attempts?: string[] | null;
      readonly turns?: string | null;
      readonly seen?: string | null;
      readonly token?: string | null;
      readonly admitted_at?: string | null;
    };
    const isWhole = turns === seen;
    if (!isWhole && reads < MOST_READS) continue;
    return {
      turns: BigInt(turns ?? 0),
      attempts: attempts ?? [],
      token: isWhole && token ? BigInt(token) : undefined,
      admittedAt: isWhole && admitted_at ? new Date(admitted_at) : undefined,
    };
  }
}

function ofProcess(recorded: RecordedTurn): LockTurn {
  const { attempt, turn, token, admittedAt, duration, outcome, process, operation, error } = recorded;
  return { attempt, turn, inPostgres: false, outcome, token, admittedAt, duration, process, operation, error };
}

/** A turn that did not commit has the number of the next one that did, and its token is lower. */
function insert(turns: LockTurn[], turn: LockTurn): void {
  const isOlder = (other: LockTurn) => {
    if (other.token !== undefined && turn.token !== undefined) return other.token < turn.token;
    return other.turn !== undefined && turn.turn !== undefined && other.turn < turn.turn;
  };
  const at = turns.findIndex(isOlder);
  turns.splice(at === -1 ? turns.length : at, 0, turn);
}
