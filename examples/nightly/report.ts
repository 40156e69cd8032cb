import { setTimeout as sleep } from 'node:timers/promises';
import type { ExampleClient } from '../client.js';

const DAY = 24 * 60 * 60 * 1_000;
/** At two in the morning, UTC. */
const OFFSET = 2 * 60 * 60 * 1_000;
/** After an error; ms. */
const PAUSE_AFTER_ERROR = 60_000;
/** The longest time that a timer of Node.js takes. */
const LONGEST = 2 ** 31 - 1;

/**
 * Writes the report of the payments, if nobody has written it in this interval. All processes call it; whoever comes first
 * runs. The report and the mark that it has run commit together, so a process that crashes in it leaves neither.
 */
export function writeReport(prisma: ExampleClient, { interval = DAY, offset = OFFSET } = {}) {
  const write = async (tx: Pick<ExampleClient, 'payment' | 'report'>) => {
    const { _count, _sum } = await tx.payment.aggregate({ _count: true, _sum: { paid: true } });
    return await tx.report.create({ data: { orders: _count, paid: _sum.paid ?? 0 } });
  };
  return prisma.$oncePer('report:nightly', interval, (tx) => write(tx), { offset });
}

/**
 * Calls `run` whenever it is due, until `signal` aborts. It needs no clock and no cron: who is told that it has run is told
 * when to call again, by the clock of Postgres.
 */
export async function whenDue(
  run: () => ReturnType<typeof writeReport>,
  signal: AbortSignal,
  { onError = console.error as (error: unknown) => void, pauseAfterError = PAUSE_AFTER_ERROR } = {},
): Promise<void> {
  while (!signal.aborted) {
    let pause = pauseAfterError;
    try {
      const result = await run();
      // Who ran asks once more, and hears when the next one is due.
      pause = result.ran ? 0 : result.nextIn;
    } catch (error) {
      onError(error);
    }
    await sleep(Math.min(pause, LONGEST), undefined, { signal }).catch(() => {});
  }
}
