import type { ExampleClient } from '../client.js';

/** The supplier's server takes so many connections of ours at a time. */
const CONNECTIONS = 3;

/** What the supplier says that was paid for an order. */
export type Fetch = (order: string, signal: AbortSignal) => Promise<number>;

/**
 * Fetches the payment of an order and writes it, beside two other imports at most, of whatever process.
 *
 * @returns which of the permits it had. @throws LockTimeoutError if none was free in time; nothing was fetched.
 */
export function importPayment(prisma: ExampleClient, order: string, fetch: Fetch): Promise<number> {
  return prisma.$withPermit(
    'imports',
    { permits: CONNECTIONS },
    async (tx, { permit, signal }) => {
      // The signal aborts where the permit is lost: another import may have it then.
      const paid = await fetch(order, signal);
      await tx.payment.create({ data: { order, paid } });
      return permit;
    },
    { waitTime: 30_000 },
  );
}
