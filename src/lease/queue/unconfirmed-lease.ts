import { Backoff } from '../../base/backoff.js';
import { now, sleep } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
import { Lease, type LookUnderWay } from '../lease.js';
import type { Releases } from '../releases.js';
import type { AcquireResult, Claim, LeaseStore } from '../store.js';
import type { Preopen } from './request.js';

/** First and longest pause before the store is told again; milliseconds. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 500;

/** A look beside the work. */
interface Look extends LookUnderWay {
  readonly answer: Promise<AcquireResult>;
}

/** The look that was under way when Postgres admitted the caller. */
interface FirstLook extends Look {
  /** Whether it names the former holder. */
  readonly namesFormer: boolean;
}

interface ConfirmDependencies {
  readonly store: LeaseStore;
  readonly emit: Emit;
  readonly releases: Releases;
}

/** The holder right behind whom Postgres has admitted the caller, if Postgres says so before the look is answered. */
export async function admittedBehind(looking: Promise<unknown>, preopen: Preopen): Promise<string | undefined> {
  const none = () => undefined;
  return await Promise.race([preopen.admitting?.then(() => preopen.former, none), looking.then(none, none)]);
}

/**
 * The lease of a caller that Postgres has admitted right behind `former`, whose COMMIT is done. Its work need not wait
 * for the store: nobody else is admitted before it ends. The store is told beside the work, and its answer confirms the
 * lease.
 */
export function unconfirmedLease(
  claim: Claim,
  former: string,
  look: FirstLook,
  dependencies: ConfirmDependencies,
): Lease {
  const lease = new Lease(claim, look.sentAt);
  lease.wasElsewhere = true;
  lease.confirming = confirm(lease, former, look, dependencies);
  return lease;
}

/** Tells the store of the lease until it has answered, or the lease is over. Never rejects. */
async function confirm(
  lease: Lease,
  former: string,
  { namesFormer, ...first }: FirstLook,
  { store, emit, releases }: ConfirmDependencies,
): Promise<void> {
  const backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
  // Without the former holder's id, the look may be from before the admission, or even from before that holder's lease.
  let isDecisive = namesFormer;
  for (let look: Look = first; ; look = { sentAt: now(), answer: store.acquire(lease, { former }) }) {
    lease.asking = look;
    try {
      const answer = await look.answer;
      if (answer.taken) {
        lease.contended = answer.contended !== false;
        lease.shared = answer.shared !== undefined;
        break;
      }
      if (isDecisive) lease.lose('gone');
    } catch (error) {
      lease.asking = undefined;
      if (lease.isOver) break;
      emit({ type: 'look-failed', key: lease.key, error });
      await sleep(backoff.next());
    }
    isDecisive = true;
    if (lease.isOver) break;
  }
  lease.confirming = undefined;
  lease.asking = undefined;
  // A look that was sent again may have been executed after the release.
  releases.sendAgain(lease.holder);
}
