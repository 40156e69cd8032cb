import { after, type Timer } from '../base/clock.js';
import { Poller, type Send } from './poller.js';
import type { BoardSource } from './source.js';

/** A comment at least so often, so that proxies see that the connection lives; milliseconds. */
const HEARTBEAT = 15_000;
/** Bytes that a viewer may be behind. One that is further is sent everything anew when it has caught up. */
const BEHIND = 4 * 1024 * 1024;

const encoder = new TextEncoder();

/** One open page. */
class Viewer {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  /** It has missed something. */
  behind = false;

  constructor(controller: ReadableStreamDefaultController<Uint8Array>) {
    this.#controller = controller;
  }

  get isFull(): boolean {
    return (this.#controller.desiredSize ?? 0) <= 0;
  }

  send(text: Uint8Array): void {
    this.#controller.enqueue(text);
  }

  end(): void {
    try {
      this.#controller.close();
    } catch {
      // It has gone by itself.
    }
  }
}

/** All open pages of one board, and the one poller that works for them. */
export class Viewers {
  readonly #viewers = new Set<Viewer>();
  readonly #poller: Poller;
  readonly #hello: object;
  #heartbeat: Timer | undefined;

  /** `hello`: what each page is told first. */
  constructor(source: BoardSource, interval: number, hello: object) {
    this.#hello = hello;
    this.#poller = new Poller(source, interval, (event, data) => this.#broadcast(event, data));
  }

  /** The events for one page, until it is cancelled or `signal` is aborted. */
  open(signal: AbortSignal): ReadableStream<Uint8Array> {
    let leave: () => void = () => {};
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const viewer = new Viewer(controller);
          leave = () => this.#leave(viewer);
          signal.addEventListener('abort', leave, { once: true });
          if (signal.aborted) return this.#close(viewer);
          this.#viewers.add(viewer);
          this.#poller.start();
          this.#beat();
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

  close(): void {
    for (const viewer of [...this.#viewers]) this.#leave(viewer);
  }

  #welcome(viewer: Viewer): void {
    viewer.send(message('hello', this.#hello));
    for (const [event, data] of this.#poller.everything()) viewer.send(message(event, data));
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    this.#close(viewer);
    if (this.#viewers.size > 0) return;
    this.#poller.stop();
    this.#heartbeat?.stop();
    this.#heartbeat = undefined;
  }

  #close(viewer: Viewer): void {
    viewer.end();
  }

  readonly #broadcast: Send = (event, data) => {
    const text = message(event, data);
    for (const viewer of this.#viewers) {
      // What a slow viewer has not read is not piled up.
      viewer.behind ||= viewer.isFull;
      if (!viewer.behind) viewer.send(text);
      else if (!viewer.isFull) {
        viewer.behind = false;
        this.#welcome(viewer);
      }
    }
  };

  #beat(): void {
    this.#heartbeat ??= after(HEARTBEAT, () => {
      this.#heartbeat = undefined;
      const beat = encoder.encode(': still here\n\n');
      for (const viewer of this.#viewers) if (!viewer.isFull) viewer.send(beat);
      this.#beat();
    });
  }
}

/** JSON has no line end of its own, so its data is one line. */
function message(event: string, data: object): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
