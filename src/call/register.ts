import type { Deadline } from '../base/clock.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { Admission } from '../transaction/admission.js';
import type { Call, HeldLeases, TransactionParts } from '../transaction/call.js';
import { fencedTransaction } from '../transaction/transaction.js';
import type { LockCall } from './parts.js';

/** Holders of keys whose leases are not looked at: Postgres alone decides. @param ageOf as `HeldLeases.age`, at each use. */
export function unleased(
  holders: Pick<HeldLeases, 'keys' | 'holders' | 'leaseTime'>,
  ageOf: () => number = () => Number.POSITIVE_INFINITY,
): HeldLeases {
  return {
    ...holders,
    key: holders.keys[0] as string,
    shared: false,
    loss: undefined,
    get age() {
      return ageOf();
    },
    show: () => {},
    attach: () => {},
    detach: () => {},
  };
}

/**
 * Runs a transaction that only writes into the keys' rows: new tokens, or with `registered`, new holders for its tokens.
 * Resolves to the tokens.
 */
export async function register<Tx>(
  parts: TransactionParts,
  { database, options, trace }: Pick<LockCall<Tx>, 'database' | 'options' | 'trace'>,
  leases: HeldLeases,
  deadline: Deadline,
  {
    registered,
    check,
    ...more
  }: Pick<Call<Tx, unknown>, 'registered' | 'takes' | 'whileClosing'> & {
    /** Throws, and so rolls the admission back, if the keys are not to be touched. */
    readonly check?: (admission: Admission) => void;
  } = {},
): Promise<readonly bigint[]> {
  return await fencedTransaction({
    parts,
    database,
    leases,
    options: { ...options, retries: 0, isolationLevel: undefined },
    deadline,
    abort: new LazyAbort(),
    work: async (_, admission) => {
      check?.(admission);
      return admission.tokens;
    },
    registered: { ...registered, durable: true },
    trace,
    ...more,
  });
}
