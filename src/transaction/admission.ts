import { createHash, randomUUID } from 'node:crypto';
import { LONGEST_TIME } from '../base/clock.js';
import type { Beginning, Statement, TextRow } from '../database/database.js';
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

/** What the admissions of a handle's transactions are checked against. */
export interface Registered {
  /** The handle's tokens, one for each key. Without them, the handle is being registered and new tokens are drawn. */
  readonly tokens?: readonly bigint[];
  /** The holder ids that replace the present ones in the keys' rows. */
  readonly successors?: readonly string[];
  /** Whether the commit must survive a crash of Postgres, because other systems will see the token. */
  readonly durable?: boolean;
}

/** What a transaction is admitted for. */
export interface AdmissionInput {
  /** The holder ids are one for each key. `leaseTime`: Postgres ends the transaction if the client is silent for that long. */
  readonly leases: {
    readonly keys: readonly string[];
    readonly holders: readonly string[];
    readonly leaseTime: number;
    readonly shared: boolean;
  };
  readonly options: { readonly timeout: number; readonly isolationLevel: string | undefined };
  readonly registered?: Registered | undefined;
  /**
   * The id of the lease's waiting room, a signed 32-bit number. A later holder from the same waiting room may end this
   * transaction.
   */
  readonly room: number | undefined;
  /** How long it waits for the locks on the keys' rows, asked for when there is a connection; milliseconds. */
  readonly waitTime: () => number;
  /** Statements that run before the admission, in the same transaction. */
  readonly before?: readonly Statement[];
}

/** An admission as it is sent: with BEGIN, and under the id of its attempt. */
export interface AdmissionRequest {
  readonly beginning: Beginning;
  readonly attempt: string;
  readonly keys: readonly string[];
}

export function admissionRequest(input: AdmissionInput): AdmissionRequest {
  const { registered: { tokens, successors, durable } = {}, room, waitTime, before = [] } = input;
  const { keys, holders, leaseTime, shared } = input.leases;
  const { timeout, isolationLevel } = input.options;
  const attempt = randomUUID();
  const isUsual = keys.length === 1 && tokens === undefined && !durable;
  const values = [
    isUsual ? (keys[0] as string) : arrayOf(keys),
    isUsual ? (holders[0] as string) : arrayOf(holders),
    attempt,
    String(Math.ceil(leaseTime)),
    String(Math.ceil(Math.min(timeout + BACKSTOP, LONGEST_TIME))),
    String(Math.ceil(waitTime())),
    // A caller without a lease (Redis is down) registers no waiting room, so that no holder ends its transaction as that
    // of a former holder.
    shared || room === undefined ? null : String(room),
  ];
  if (!isUsual) {
    values.push(
      tokens === undefined ? null : arrayOf(tokens.map(String)),
      successors === undefined ? null : arrayOf(successors),
      durable === undefined ? null : String(durable),
    );
  }
  const statement = isUsual
    ? { text: ADMIT, name: ADMIT_NAME, values }
    : { text: ADMIT_KEYS, name: ADMIT_KEYS_NAME, values };
  return { beginning: { isolationLevel, statements: [...before, statement] }, attempt, keys };
}

/** Formats a Postgres array literal. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
function arrayOf(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

export function readAdmission({ keys, attempt }: AdmissionRequest, rows: readonly TextRow[]): Admission {
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
