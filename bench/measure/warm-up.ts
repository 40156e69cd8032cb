import type { Sale, Seller } from '../contestants/contestant.js';
import { alone } from './burst.js';
import { rounds } from './rounds.js';

/**
 * So many sales until V8 has compiled the larger functions that they run. A contestant that brings code of its own would be
 * measured in the interpreter otherwise, and one that is mostly Prisma's and pg's code, which all others warm, would not. Small
 * functions take up to 12,000 (docs/decisions/0028-what-a-turn-costs.md), for which `--warm-up` is there.
 */
export const WARM_UP = 2_000;
/** A contestant that is slow alone has warmed less when so much time for each of its sales is over; ms. */
const SALE = 5;
const AT_ONCE = 50;

/** Opens what the contestant needs and makes so many sales; returns how many it made. */
export async function warmUp(seller: Seller, sale: Sale, count: number): Promise<number> {
  let made = 0;
  for (const _ of rounds(Math.ceil(count / AT_ONCE), count * SALE)) {
    made += (await alone(seller, sale, Math.min(count, AT_ONCE))).ok;
  }
  return made;
}
