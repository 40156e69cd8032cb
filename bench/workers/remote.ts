import { startWorker, type Worker, type WorkerMessage } from '../../test/support/worker.js';
import type { Verbs } from './serve.js';

interface Answer extends WorkerMessage {
  readonly value?: unknown;
  readonly error?: string;
}

/** Longer than any part of a scenario takes: only a worker that hangs meets it. */
const ANSWER_WITHIN = 60_000;

/** The verbs of a worker process, called as if they were here. */
export class Remote<V extends Verbs> {
  readonly #worker: Worker;
  #asked = 0;

  constructor(file: string, site: object) {
    this.#worker = startWorker(new URL(file, import.meta.url), [JSON.stringify(site)]);
  }

  async ask<Verb extends keyof V & string>(
    verb: Verb,
    argument: Parameters<V[Verb]>[0],
    { within = ANSWER_WITHIN } = {},
  ): Promise<Awaited<ReturnType<V[Verb]>>> {
    const id = ++this.#asked;
    this.#worker.send({ type: 'ask', id, verb, argument });
    const { value, error } = await this.#worker.next<Answer>(`answer ${id}`, { within });
    if (error !== undefined) throw new Error(`${verb} in a worker: ${error}`);
    return value as Awaited<ReturnType<V[Verb]>>;
  }

  /** As a crash: what it still waits for is nobody's any more. */
  async kill(): Promise<void> {
    await this.#worker.kill();
  }
}

/** Starts `count` workers, lets `use` work with them, and ends them. */
export async function withRemotes<V extends Verbs, R>(
  file: string,
  site: object,
  count: number,
  use: (remotes: ReadonlyArray<Remote<V>>) => Promise<R>,
): Promise<R> {
  const remotes = Array.from({ length: count }, () => new Remote<V>(file, site));
  try {
    return await use(remotes);
  } finally {
    await Promise.all(remotes.map((remote) => remote.kill()));
  }
}

/** The same with one. */
export function withRemote<V extends Verbs, R>(
  file: string,
  site: object,
  use: (remote: Remote<V>) => Promise<R>,
): Promise<R> {
  return withRemotes<V, R>(file, site, 1, ([remote]) => use(remote as Remote<V>));
}
