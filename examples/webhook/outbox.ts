import type { ExampleClient } from '../client.js';

interface Message {
  readonly id: number;
  readonly order: string;
  readonly paid: number;
}

/**
 * Tells another system by HTTP what has committed. A message is a row that was written in the same transaction, so none is
 * lost with the process; it may be sent twice, and its id lets the receiver see that.
 */
export class Outbox {
  readonly #prisma: ExampleClient;
  readonly #url: string;

  constructor(prisma: ExampleClient, url: string) {
    this.#prisma = prisma;
    this.#url = url;
  }

  /** Called after the commit. Rejects if the receiver is away: `sendAll` sends it later. */
  async send({ id, order, paid }: Message): Promise<void> {
    const answer = await fetch(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': String(id) },
      body: JSON.stringify({ order, paid }),
      signal: AbortSignal.timeout(5_000),
    });
    if (!answer.ok) throw new Error(`The receiver answered ${answer.status} to message ${id}.`);
    await this.#prisma.outbox.update({ where: { id }, data: { sent: true } });
  }

  /** Sends what a crash or an absent receiver has left. Run it at the start and every minute. @returns how many. */
  async sendAll(): Promise<number> {
    const unsent = await this.#prisma.outbox.findMany({ where: { sent: false }, orderBy: { id: 'asc' } });
    for (const message of unsent) await this.send(message);
    return unsent.length;
  }
}
