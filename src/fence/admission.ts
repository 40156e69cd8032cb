import { randomUUID } from 'node:crypto';
import type { Query } from './database.js';
import { ADMIT } from './sql.js';

/** What Postgres said to one attempt at one transaction. */
export interface Admission {
  readonly key: string;
  readonly attempt: string;
  readonly token: bigint;
  /** The turn's number in the key's row: how many admissions it has seen since it was born. */
  readonly turn: bigint;
  readonly xid: string;
  readonly pid: number;
  /** The crash epoch, or `undefined` where none has been started since the last crash. */
  readonly epoch: string | undefined;
}

export interface AdmissionRequest {
  readonly key: string;
  readonly holder: string;
  /** A client that is silent for so long, inside the transaction, is ended; milliseconds. */
  readonly leaseTime: number;
  /** No statement of the work runs longer; milliseconds. */
  readonly workTime: number;
  /** How long to wait for the key's row; milliseconds. */
  readonly waitTime: number;
}

/** What `fenced_lock.admit` answers with. */
interface Answer {
  readonly token: string;
  readonly turn: string;
  readonly xid: string;
  readonly pid: number;
  readonly epoch: string | null;
}

export async function admit(query: Query, request: AdmissionRequest): Promise<Admission> {
  const { key, holder } = request;
  const attempt = randomUUID();
  const [leaseTime, workTime, waitTime] = [request.leaseTime, request.workTime, request.waitTime].map(Math.ceil);
  const [row] = await query(ADMIT, [JSON.stringify({ keys: [key], holder, attempt, leaseTime, workTime, waitTime })]);
  const { token, turn, xid, pid, epoch } = JSON.parse(row?.['answer'] as string) as Answer;
  return { key, attempt, token: BigInt(token), turn: BigInt(turn), xid, pid, epoch: epoch ?? undefined };
}
