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

export async function admit(query: Query, request: AdmissionRequest): Promise<Admission> {
  const attempt = randomUUID();
  const times = [request.leaseTime, request.workTime, request.waitTime].map((ms) => Math.max(1, Math.ceil(ms)));
  const [row] = await query(ADMIT, [[request.key], request.holder, attempt, ...times]);
  if (row === undefined) throw new Error('fenced_lock.admit returned no row');
  return {
    key: request.key,
    attempt,
    token: BigInt(row['token'] as string),
    turn: BigInt(row['turn'] as string),
    xid: row['xid'] as string,
    pid: Number(row['pid']),
    epoch: (row['epoch'] as string | null) ?? undefined,
  };
}
