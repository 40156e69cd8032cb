import type { Board } from '../../../src/addons/board/index.js';
import type { Row } from '../../../src/addons/board/keys.js';
import type { Status } from '../../../src/addons/board/poller.js';
import type { Finding } from '../../../src/addons/board/source.js';
import { eventually } from '../../support/eventually.js';

/** A key, as the page is sent it. */
type SentKey = Row & { readonly expiresIn: number };

interface Told {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: what arrives is JSON
  readonly data: any;
}

const ORIGIN = 'http://board.test';

/** Somebody who looks at a board, without a browser: what the page would know. */
export class Viewer {
  readonly told: Told[] = [];
  readonly keys = new Map<string, SentKey>();
  status: Status | undefined;
  readonly #gone = new AbortController();
  #ended = false;

  static async look(board: Board, path = '/events'): Promise<Viewer> {
    const viewer = new Viewer();
    const response = await board(new Request(`${ORIGIN}${path}`, { signal: viewer.#gone.signal }));
    if (response.status !== 200 || response.body === null) throw new Error(`${response.status}`);
    void viewer.#read(response.body);
    await viewer.until('the first look', () => viewer.told.some(({ event }) => event === 'keys'));
    return viewer;
  }

  /** What is said of the health of the servers. */
  get findings(): readonly Finding[] {
    const { postgres, redis = [] } = this.status ?? {};
    return [...(postgres ? [postgres] : []), ...redis].flatMap(({ findings }) => findings);
  }

  get ended(): boolean {
    return this.#ended;
  }

  leave(): void {
    this.#gone.abort();
  }

  until<T>(what: string, found: () => T | Promise<T>): Promise<Exclude<T, undefined | false | null>> {
    return eventually(what, async () => found()) as Promise<Exclude<T, undefined | false | null>>;
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = '';
    try {
      for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true });
        const parts = text.split('\n\n');
        text = parts.pop() ?? '';
        for (const part of parts) this.#hear(part);
      }
    } catch {
      // It has left.
    }
    this.#ended = true;
  }

  #hear(part: string): void {
    const [, event, json] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
    if (event === undefined || json === undefined) return;
    const data = JSON.parse(json);
    this.told.push({ event, data });
    if (event === 'status') this.status = data;
    if (event !== 'keys') return;
    if (data.all) this.keys.clear();
    for (const key of data.gone) this.keys.delete(key);
    for (const key of data.keys) this.keys.set(key.key, key);
  }
}

/** What the page sends when somebody has confirmed; `change` makes it another request. */
export function forceRequest(
  token: string | undefined,
  body: unknown,
  change: {
    readonly headers?: Record<string, string | undefined>;
    readonly method?: string;
    readonly path?: string;
  } = {},
): Request {
  const headers = {
    host: 'board.test',
    origin: ORIGIN,
    'sec-fetch-site': 'same-origin',
    'content-type': 'application/json',
    'x-fenced-lock-board': token,
    ...change.headers,
  };
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return new Request(`${ORIGIN}${change.path ?? '/force-release'}`, {
    method: change.method ?? 'POST',
    headers: given,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export function get(board: Board, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return board(new Request(`${ORIGIN}${path}`, { headers }));
}
