import { after } from '../base/clock.js';

/** How long, and how often, the client of a Cluster is expected to send a command that was given up here; milliseconds. */
const LATEST = 5_000;
const AGAIN_EVERY = 500;

/** Holders whose acquire was given up here, and that may yet be given what they asked for. */
export class Unanswered {
  readonly #holders = new Set<string>();

  add(holder: string): void {
    this.#holders.add(holder);
  }

  /** This holder has nothing any more: whatever the client still sends for it is undone, behind that. */
  over(holder: string, release: () => Promise<unknown>): void {
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
