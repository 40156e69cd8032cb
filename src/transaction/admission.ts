import { createHash, randomUUID } from 'node:crypto';
import type { Query, Statement, TextRow } from '../database/database.js';
import { ADMIT } from '../database/sql.js';

/**
 * A hash of the statement's text: behind a pooler, another version of this package may have prepared its own admission
 * on the same server connection, under another text.
 */
const ADMIT_NAME = `fenced_lock ${createHash('sha256').update(ADMIT).digest('hex').slice(0, 16)}`;

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

/** Builds the admission statement, with a new attempt id in it. */
export function admissionOf(request: AdmissionRequest): { readonly statement: Statement; readonly attempt: string } {
  const { keys, holders, leaseTime, workTime, waitTime, room, tokens, successors, durable } = request;
  const attempt = randomUUID();
  const values = [
    arrayOf(keys),
    arrayOf(holders),
    attempt,
    String(Math.ceil(leaseTime)),
    String(Math.ceil(workTime)),
    String(Math.ceil(waitTime)),
    room === undefined ? null : String(room),
    tokens === undefined ? null : arrayOf(tokens.map(String)),
    successors === undefined ? null : arrayOf(successors),
    durable === undefined ? null : String(durable),
  ];
  return { statement: { text: ADMIT, name: ADMIT_NAME, values }, attempt };
}

/** Formats a Postgres array literal. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
function arrayOf(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

export function readAdmission(
  { keys, attempt }: { readonly keys: readonly string[]; readonly attempt: string },
  rows: readonly TextRow[],
): Admission {
  const answer = rows[0]?.[0] ?? '';
  const [turn = '', xid = '', pid, epoch, ...drawn] = answer.split(' ');
  const tokens = drawn.map(BigInt);
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

/** Sends an admission in a transaction that has already begun. */
export async function admit(query: Query, request: AdmissionRequest): Promise<Admission> {
  const { statement, attempt } = admissionOf(request);
  const [row] = await query(statement.text, statement.values);
  return readAdmission({ keys: request.keys, attempt }, [[row?.['answer'] as string]]);
}
