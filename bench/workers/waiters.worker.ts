// A process full of callers that wait, to be killed when they were looked at.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Sale } from '../contestants/contestant.js';
import { contestantOf } from '../contestants/index.js';
import { House, type Site } from '../house.js';
import { stamp } from '../measure/stamp.js';
import { fencedLock } from '../shipped.js';
import { serve } from './serve.js';

interface Waiting {
  readonly contestant: string;
  readonly sale: Pick<Sale, 'key' | 'id'>;
  readonly callers: number;
}

setFlagsFromString('--expose_gc');
const gc = runInNewContext('gc') as () => void;

const house = new House(JSON.parse(process.argv[2] as string) as Site);

let begun = 0;
let failed = 0;
let cpuAtFirst = process.cpuUsage();
let stampAtFirst = 0;
const delay = monitorEventLoopDelay({ resolution: 10 });

const verbs = {
  /** Opens all that is opened once, so that it is not counted as the callers'. */
  async warmUp({ contestant, sale }: Omit<Waiting, 'callers'>): Promise<void> {
    const seller = await house.seller(contestantOf(contestant));
    await seller.sell(sale);
  },

  /** The heap with nothing but live objects on it; bytes. */
  heap(_: null): number {
    gc();
    return process.memoryUsage().heapUsed;
  },

  /** Lets the callers come, and does not wait for them. */
  async wait({ contestant, sale, callers }: Waiting): Promise<void> {
    const seller = await house.seller(contestantOf(contestant));
    const began = () => {
      begun++;
    };
    const gaveUp = () => {
      failed++;
    };
    for (let caller = 0; caller < callers; caller++) seller.sell({ ...sale, began }).catch(gaveUp);
  },

  from(_: null): void {
    cpuAtFirst = process.cpuUsage();
    stampAtFirst = stamp();
    delay.enable();
    delay.reset();
  },

  /** Since `from`: the share of one core and the longest stall, ms. In all: how many had their turn or gave up. */
  since(_: null): { cpu: number; stall: number; begun: number; failed: number } {
    const { user, system } = process.cpuUsage(cpuAtFirst);
    const ms = stamp() - stampAtFirst;
    return { cpu: (user + system) / 1_000 / ms, stall: delay.max / 1e6, begun, failed };
  },

  /**
   * As many leases as there are keys. A lease is had before a connection is waited for, so those who find none in the
   * pool hold a lease that has to be renewed.
   */
  hold({ keys, leaseTime }: { readonly keys: readonly string[]; readonly leaseTime: number }): void {
    const prisma = house.prisma.$extends(
      fencedLock({
        redis: house.redis,
        onEvent: ({ type }) => {
          if (type === 'lease-lost') failed++;
        },
      }),
    );
    const options = { leaseTime, maxWait: 600_000, timeout: 600_000, waitTime: 60_000 };
    const forEver = () => {
      begun++;
      return new Promise<void>(() => {});
    };
    for (const key of keys) void prisma.$withLock(key, forEver, options).catch(() => {});
  },
};

export type WaitersVerbs = typeof verbs;
serve(verbs);
