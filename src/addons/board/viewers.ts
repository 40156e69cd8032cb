import { after, stop, type Timer } from '../../base/clock.js';
import { Poller } from './poller.js';
import type { BoardSource } from './source.js';

/** Time between two comments, which keep proxies from closing an idle connection; milliseconds. */
const HEARTBEAT = 15_000;
/** How many bytes a page may have unread. One that has more gets no more messages, and the whole state when it has read on. */
const BEHIND = 4 * 1024 * 1024;
/** How many pages may be open at once. Each may take `BEHIND` bytes of memory. */
export const MOST_VIEWERS = 50;

const encoder = new TextEncoder();
const BEAT = encoder.encode(': still here\n\n');

/** One open page. */
interface Viewer {
  /** Kept here, because its signal is not aborted any more once it is garbage: https://github.com/nodejs/undici/issues/1926 */
  readonly request: Request;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Whether it has missed a message. */
  behind: boolean;
}

/** All open pages of one board. They share one poller. */
export class Viewers {
  readonly #viewers = new Set<Viewer>();
  readonly #poller: Poller;
  readonly #source: BoardSource;
  readonly #hello: object;
  #heartbeat: Timer | undefined;

  /** `hello`: the first message to each page. */
  constructor(source: BoardSource, interval: number, hello: object) {
    this.#hello = hello;
    this.#source = source;
    this.#poller = new Poller(source, interval, (event, data) => this.#broadcast(message(event, data)));
  }

  get isFull(): boolean {
    return this.#viewers.size >= MOST_VIEWERS;
  }

  /** The events for one page, until it is cancelled or the signal of its request is aborted. */
  open(request: Request): ReadableStream<Uint8Array> {
    const { signal } = request;
    let leave: () => void = () => {};
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          if (signal.aborted) return controller.close();
          const viewer = { request, controller, behind: false };
          leave = () => this.#leave(viewer);
          signal.addEventListener('abort', leave, { once: true });
          this.#viewers.add(viewer);
          this.#poller.start();
          if (this.#heartbeat === undefined) this.#beat();
          this.#welcome(viewer);
        },
        cancel: () => {
          signal.removeEventListener('abort', leave);
          leave();
        },
      },
      { highWaterMark: BEHIND, size: (text) => text?.byteLength ?? 0 },
    );
  }

  hurry(): void {
    this.#poller.hurry();
  }

  /** A request that is no viewer's may have opened connections, which the poller will not close. */
  restIfNobodyLooks(): void {
    if (this.#viewers.size === 0) this.#source.rest?.();
  }

  close(): void {
    for (const viewer of [...this.#viewers]) this.#leave(viewer);
  }

  #welcome({ controller }: Viewer): void {
    controller.enqueue(message('hello', this.#hello));
    for (const [event, data] of this.#poller.everything()) controller.enqueue(message(event, data));
  }

  #leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer)) return;
    try {
      viewer.controller.close();
    } catch {
      // It was closed, cancelled or failed before.
    }
    if (this.#viewers.size > 0) return;
    this.#poller.stop();
    stop(this.#heartbeat);
    this.#heartbeat = undefined;
  }

  #broadcast(text: Uint8Array): void {
    for (const viewer of [...this.#viewers]) {
      const isFull = (viewer.controller.desiredSize ?? 0) <= 0;
      try {
        if (!isFull && viewer.behind) this.#welcome(viewer);
        else if (!isFull) viewer.controller.enqueue(text);
        viewer.behind = isFull;
      } catch {
        // Its stream has failed, and nothing else told so.
        this.#leave(viewer);
      }
    }
  }

  #beat(): void {
    this.#heartbeat = after(HEARTBEAT, () => {
      this.#broadcast(BEAT);
      if (this.#viewers.size > 0) this.#beat();
    });
  }
}

/** JSON has no line end of its own, so its data is one line. */
function message(event: string, data: object): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
