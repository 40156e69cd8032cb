// One process of several that meet at one key.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sale } from '../contestants/contestant.js';
import { contestantOf } from '../contestants/index.js';
import { House, type Site } from '../house.js';
import { alone, type Burst, burst } from '../measure/burst.js';
import { stamp } from '../measure/stamp.js';
import { warmUp } from '../measure/warm-up.js';
import { serve } from './serve.js';

interface Task {
  readonly contestant: string;
  readonly sale: Pick<Sale, 'key' | 'id'>;
}

const house = new House(JSON.parse(process.argv[2] as string) as Site);
const sellerOf = (name: string) => house.seller(contestantOf(name));

/** The turn that this process has, and what ends it. */
let held: { letGo(): void; sold: Promise<void> } | undefined;
let endedAt = Number.NaN;
let releasedAt = Number.NaN;

const verbs = {
  async warmUp({ contestant, sale, count }: Task & { readonly count: number }): Promise<number> {
    return await warmUp(await sellerOf(contestant), sale, count);
  },

  async alone({ contestant, sale, count }: Task & { readonly count: number }): Promise<Burst> {
    return await alone(await sellerOf(contestant), sale, count);
  },

  /** All callers come at the moment `at`. */
  async burst({
    contestant,
    sale,
    callers,
    at,
  }: Task & { readonly callers: number; readonly at: number }): Promise<Burst> {
    const seller = await sellerOf(contestant);
    const sales = Array.from({ length: callers }, () => sale);
    await sleep(Math.max(0, at - stamp()));
    return await burst(seller, sales);
  },

  /** Resolves when the turn is had, with the moment when it was asked for and when it began. It is kept until `letGo`. */
  async take({ contestant, sale }: Task): Promise<{ asked: number; began: number }> {
    const seller = await sellerOf(contestant);
    return await new Promise((resolve, reject) => {
      const asked = stamp();
      const sold = seller.sell({
        ...sale,
        began: () =>
          new Promise<void>((letGo) => {
            resolve({ asked, began: stamp() });
            held = { letGo, sold };
          }),
        ended: () => {
          endedAt = stamp();
        },
        releases: () => {
          releasedAt = stamp();
        },
      });
      sold.catch(reject);
    });
  },

  async letGo(_: null): Promise<{ ended: number; released: number }> {
    held?.letGo();
    await held?.sold;
    return { ended: endedAt, released: releasedAt };
  },

  /** One round trip to Redis, ms. */
  async ping(_: null): Promise<number> {
    const start = stamp();
    await house.redis.ping();
    return stamp() - start;
  },
};

export type SellerVerbs = typeof verbs;
serve(verbs);
