import { toJson } from './headers.js';
import { Keys } from './keys.js';
import { Poller, type Settings } from './poller.js';
import type { BoardSource } from './source.js';

/** How many bytes a page may have unread. The events of one that has more are ended; when it has read them, it connects again. */
const BEHIND = 4 * 1024 * 1024;
/** How many pages may be open at once. Each may take `BEHIND` bytes of memory. */
export const MOST_VIEWERS = 50;

const encoder = new TextEncoder();

/** One open page. */
interface Viewer {
  /** Kept here, because its signal is not aborted any more once it is garbage: https://github.com/nodejs/undici/issues/1926 */
  readonly request: Request;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
}

/** All open pages of one board. They share one poller, which is there as long as one of them is. */
export class Viewers {
  readonly #viewers = new Set<Viewer>();
  readonly #keys = new Keys();
  readonly #source: BoardSource;
  readonly #settings: Settings;
  #poller: Poller | undefined;

  constructor(source: BoardSource, settings: Settings) {
    this.#source = source;
    this.#settings = settings;
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
          const viewer = { request, controller };
          leave = () => this.#leave(viewer);
          signal.addEventListener('abort', leave, { once: true });
          this.#viewers.add(viewer);
          this.#poller ??= new Poller(this.#source, this.#keys, this.#settings, (event, data) =>
            this.#broadcast(message(event, data)),
          );
          for (const [event, data] of this.#poller.everything()) controller.enqueue(message(event, data));
        },
        cancel: () => leave(),
      },
      { highWaterMark: BEHIND, size: (text) => text?.byteLength ?? 0 },
    );
  }

  /** A request that is no viewer's may have opened connections, which no poller will close. */
  restIfNobodyLooks(): void {
    if (this.#viewers.size === 0) this.#source.rest?.();
  }

  close(): void {
    for (const viewer of [...this.#viewers]) this.#leave(viewer);
  }

  #leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer)) return;
    try {
      viewer.controller.close();
    } catch {
      // It was closed, cancelled or failed before.
    }
    if (this.#viewers.size > 0) return;
    this.#poller?.stop();
    this.#poller = undefined;
    this.#source.rest?.();
  }

  #broadcast(text: Uint8Array): void {
    for (const viewer of [...this.#viewers]) {
      const { controller } = viewer;
      try {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(text);
        else this.#leave(viewer);
      } catch {
        // Its stream has failed, and nothing else told so.
        this.#leave(viewer);
      }
    }
  }
}

/** JSON has no line end of its own, so its data is one line. */
function message(event: string, data: object): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${toJson(data)}\n\n`);
}
