import { createHash, randomUUID } from 'node:crypto';
import type { Query, Statement, TextRow } from '../database/database.js';
import { ADMIT } from '../database/sql.js';

/** Made of its text: behind a pooler another version of this package may have prepared its own on the same server. */
const ADMIT_NAME = `fenced_lock ${createHash('sha256').update(ADMIT).digest('hex').slice(0, 16)}`;

/** What Postgres said to one attempt at one transaction. */
export interface Admission {
  /** The last of its keys, whose row tells what became of it. */
  readonly key: string;
  readonly attempt: string;
  /** One for each key. The last one was drawn last, so it is the highest: that of its rows. */
  readonly tokens: readonly bigint[];
  readonly token: bigint;
  /** The turn's number in the key's row: how many admissions it has seen since it was born. */
  readonly turn: bigint;
  readonly xid: string;
  readonly pid: number;
  /** The crash epoch, or `undefined` where none has been started since the last crash. */
  readonly epoch: string | undefined;
}

export interface AdmissionRequest {
  readonly keys: readonly string[];
  /** One for each key. */
  readonly holders: readonly string[];
  /** A client that is silent for so long, inside the transaction, is ended; milliseconds. */
  readonly leaseTime: number;
  /** No statement of the work runs longer; milliseconds. */
  readonly workTime: number;
  /** How long to wait for the keys' rows; milliseconds. */
  readonly waitTime: number;
  /** Those of a handle, one for each key; without, fresh ones are drawn. */
  readonly tokens?: readonly bigint[] | undefined;
  /** With `tokens`: the holders in whose name they stand from now on. */
  readonly successors?: readonly string[] | undefined;
  /** The waiting room of the lease, as a signed number of 32 bits: who has its next lease may end this transaction. */
  readonly room?: number | undefined;
  /** Whether a crash must not lose the commit, because the token is going to be shown to others. */
  readonly durable?: boolean | undefined;
}

/** The statement that asks for an admission, and the id of the attempt in it. */
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

/** As Postgres reads an array. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
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

/** Asks for an admission in a transaction that has begun. */
export async function admit(query: Query, request: AdmissionRequest): Promise<Admission> {
  const { statement, attempt } = admissionOf(request);
  const [row] = await query(statement.text, statement.values);
  return readAdmission({ keys: request.keys, attempt }, [[row?.['answer'] as string]]);
}
