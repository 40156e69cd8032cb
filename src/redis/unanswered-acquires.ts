import { after } from '../base/clock.js';

/**
 * For how long, and how often, to undo a command that timed out here but that a Cluster client may still send;
 * milliseconds.
 */
const LATEST = 5_000;
const AGAIN_EVERY = 500;

/** The holders whose acquire timed out here, and may still take the lease later. */
export class UnansweredAcquires {
  readonly #holders = new Set<string>();

  add(holder: string): void {
    this.#holders.add(holder);
  }

  /** Called when the holder has released the lease. Repeats the release, so that a late acquire is undone. */
  onReleased(holder: string, release: () => Promise<unknown>): void {
    if (this.#holders.delete(holder)) releaseAgain(release, LATEST);
  }
}

function releaseAgain(release: () => Promise<unknown>, left: number): void {
  if (left <= 0) return;
  after(AGAIN_EVERY, () => {
    release().catch(() => {});
    releaseAgain(release, left - AGAIN_EVERY);
  }).unref();
}
