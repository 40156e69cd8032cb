import { createHash, randomUUID } from 'node:crypto';
import { LONGEST_TIME } from '../base/clock.js';
import type { Statement, TextRow } from '../database/database.js';
import { ADMIT, ADMIT_KEYS } from '../database/sql.js';

/**
 * A hash of the statement's text: behind a pooler, another version of this package may have prepared its own admission
 * on the same server connection, under another text.
 */
const ADMIT_NAME = nameOf(ADMIT);
const ADMIT_KEYS_NAME = nameOf(ADMIT_KEYS);
/**
 * `statement_timeout` exceeds the work's timeout by this, so that the client aborts first, with an error that says why;
 * milliseconds.
 */
const BACKSTOP = 500;

/** What Postgres answered to one attempt at a transaction. */
export interface Admission {
  /** The last of the keys. The outcome of a lost COMMIT is read from its row. */
  readonly key: string;
  readonly attempt: string;
  /** One token for each key. The last one was drawn last, so it is the highest. Rows are fenced with it. */
  readonly tokens: readonly bigint[];
  readonly token: bigint;
  /** The number of this admission in the key's row, counted since the row was created. */
  readonly turn: bigint;
  readonly xid: string;
  readonly pid: number;
  /** The crash epoch; `undefined` if no epoch was started since the last crash. */
  readonly epoch: string | undefined;
}

export interface AdmissionRequest {
  readonly keys: readonly string[];
  /** One holder id for each key. */
  readonly holders: readonly string[];
  /** Postgres ends the transaction if the client is silent for this time; milliseconds. */
  readonly leaseTime: number;
  /** Postgres cancels a statement of the work that runs longer; milliseconds. */
  readonly workTime: number;
  /** How long the admission waits for the locks on the keys' rows; milliseconds. */
  readonly waitTime: number;
  /** The registered tokens of a handle, one for each key. Without them, new tokens are drawn. */
  readonly tokens?: readonly bigint[] | undefined;
  /** With `tokens`: the holder ids that replace the present ones in the keys' rows. */
  readonly successors?: readonly string[] | undefined;
  /**
   * The id of the lease's waiting room, a signed 32-bit number. A later holder from the same waiting room may end this
   * transaction.
   */
  readonly room?: number | undefined;
  /** Whether the commit must survive a crash of Postgres, because other systems will see the token. */
  readonly durable?: boolean | undefined;
}

/** What a call is admitted for. */
export interface AdmissionInput {
  readonly leases: Pick<AdmissionRequest, 'keys' | 'holders' | 'leaseTime'> & { readonly shared: boolean };
  /** The timeout of the work; milliseconds. */
  readonly options: { readonly timeout: number };
  readonly registered?: Pick<AdmissionRequest, 'tokens' | 'successors' | 'durable'> | undefined;
  readonly room: number | undefined;
  /** How long it waits for the locks on the keys' rows, asked for when there is a connection; milliseconds. */
  readonly waitTime: () => number;
}

/** The admission request of a call. */
export function requestOf({ leases, options, registered, room, waitTime }: AdmissionInput): AdmissionRequest {
  const { keys, holders, leaseTime, shared } = leases;
  const workTime = Math.min(options.timeout + BACKSTOP, LONGEST_TIME);
  // A caller without a lease (Redis is down) registers no waiting room, so that no holder ends its transaction as that
  // of a former holder.
  return { keys, holders, leaseTime, workTime, waitTime: waitTime(), room: shared ? undefined : room, ...registered };
}

/** Builds the admission statement, with a new attempt id in it. */
export function admissionStatement(request: AdmissionRequest): {
  readonly statement: Statement;
  readonly attempt: string;
} {
  const { keys, holders, leaseTime, workTime, waitTime, room, tokens, successors, durable } = request;
  const attempt = randomUUID();
  const isUsual = keys.length === 1 && tokens === undefined && !durable;
  const values = [
    isUsual ? (keys[0] as string) : arrayOf(keys),
    isUsual ? (holders[0] as string) : arrayOf(holders),
    attempt,
    String(Math.ceil(leaseTime)),
    String(Math.ceil(workTime)),
    String(Math.ceil(waitTime)),
    room === undefined ? null : String(room),
  ];
  if (isUsual) return { statement: { text: ADMIT, name: ADMIT_NAME, values }, attempt };
  values.push(
    tokens === undefined ? null : arrayOf(tokens.map(String)),
    successors === undefined ? null : arrayOf(successors),
    durable === undefined ? null : String(durable),
  );
  return { statement: { text: ADMIT_KEYS, name: ADMIT_KEYS_NAME, values }, attempt };
}

/** Formats a Postgres array literal. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
function arrayOf(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

/** @param request the keys that were asked for, and the id of the attempt. */
export function readAdmission(
  { keys, attempt }: Pick<Admission, 'attempt'> & Pick<AdmissionRequest, 'keys'>,
  rows: readonly TextRow[],
): Admission {
  const words = (rows[0]?.[0] ?? '').split(' ');
  const [turn = '', xid = '', pid, epoch] = words;
  const tokens = words.slice(4, 4 + keys.length).map(BigInt);
  return {
    key: keys.at(-1) as string,
    attempt,
    tokens,
    token: tokens.at(-1) as bigint,
    turn: BigInt(turn),
    xid,
    pid: Number(pid),
    epoch: epoch === '-' ? undefined : epoch,
  };
}

function nameOf(text: string): string {
  return `fenced_lock ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}
