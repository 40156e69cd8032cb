import type { ExampleClient } from '../client.js';
import type { Outbox } from './outbox.js';

/** What the payment provider sends, once or several times. */
export interface PaymentEvent {
  readonly id: string;
  readonly order: string;
  readonly amount: number;
}

export class UnknownOrderError extends Error {
  override readonly name = 'UnknownOrderError';
}

/**
 * Gives an event its effect once, however often it is delivered. The event's id is the key: two deliveries of one event
 * come one after the other, and the second one finds the row of the first.
 *
 * @returns whether this delivery had the effect. @throws UnknownOrderError; the event may then be delivered again.
 */
export function handleEvent(prisma: ExampleClient, outbox: Outbox, event: PaymentEvent): Promise<'done' | 'seen'> {
  const { id, order, amount } = event;
  return prisma.$withLock(`payment-event:${id}`, async (tx, lock) => {
    if ((await tx.event.findUnique({ where: { id } })) !== null) return 'seen';
    const payment = await tx.payment.findUnique({ where: { order } });
    if (payment === null) throw new UnknownOrderError(`There is no order ${order}.`);
    // Other events of the same order have other keys, so this must be right without the lock.
    const { paid } = await tx.payment.update({ where: { order }, data: { paid: { increment: amount } } });
    await tx.event.create({ data: { id, order } });
    const message = await tx.outbox.create({ data: { order, paid } });
    // Only if this has committed, and when nobody waits for the lock any more.
    lock.afterCommit(() => outbox.send(message));
    return 'done';
  });
}
