import autocannon, { type Instance } from 'autocannon';

/** Requests by so many connections, one after the other on each, until it is stopped. */
export class Load {
  /** How often each status was answered. */
  readonly statuses = new Map<number, number>();
  /** The longest time that a request has waited for its answer; ms. */
  slowest = 0;
  readonly #instance: Instance;

  constructor(url: string, connections: number, body: unknown = {}) {
    this.#instance = autocannon({
      url,
      connections,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      duration: 600,
      timeout: 60,
    });
    this.#instance.on('response', (_client, status, _bytes, time) => {
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      this.slowest = Math.max(this.slowest, time);
    });
  }

  answers(status: number): number {
    return this.statuses.get(status) ?? 0;
  }

  /** Resolves to the number of requests that had no answer until then, other than those that were just under way. */
  async stop(): Promise<number> {
    this.#instance.stop();
    const { errors } = await this.#instance;
    return errors;
  }
}
