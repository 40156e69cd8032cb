import autocannon, { type Instance } from 'autocannon';

/** Requests by so many connections, one after the other on each, until it is stopped. */
export class Load {
  /** How often each status was answered. */
  readonly statuses = new Map<number, number>();
  /** How often each code of an error was answered; '' where the error has none. */
  readonly codes = new Map<string, number>();
  /** What was answered with 200. */
  readonly results: unknown[] = [];
  /** The longest time that a request has waited for its answer; ms. */
  slowest = 0;
  readonly #instance: Instance;

  /** `paths`: each connection asks for them in turn. */
  constructor(
    url: string,
    connections: number,
    body: unknown = {},
    paths: readonly string[] = [new URL(url).pathname],
  ) {
    const request = {
      method: 'POST' as const,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      onResponse: (status: number, answer: string) => this.#note(status, answer),
    };
    this.#instance = autocannon({
      url,
      connections,
      requests: paths.map((path) => ({ ...request, path })),
      duration: 600,
      timeout: 60,
    });
    this.#instance.on('response', (_client, _status, _bytes, time) => {
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

  #note(status: number, answer: string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 200) {
      this.results.push(JSON.parse(answer));
      return;
    }
    const { code = '' } = JSON.parse(answer) as { code?: string };
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
  }
}
