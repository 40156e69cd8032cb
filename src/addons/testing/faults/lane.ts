import type { Socket } from 'node:net';

export type Verdict = 'forward' | 'cut' | 'cut-after' | 'hold';

/** What holds for all lanes of one direction. */
export interface Way {
  silent: boolean;
  latency: number;
}

/** What a lane has still to pass on: bytes, or the news that the sender has ended or broken the connection. */
type Item = { readonly due: number } & ({ readonly data: Buffer } | { readonly news: 'ended' | 'broken' | 'cut' });

/** The sender is stopped beyond this, as a full TCP window would. */
const HELD_BYTES = 64 * 1024;

/** One direction of one connection: everything in order, delayed or held back, the end of the connection included. */
export class Lane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #way: Way;
  #items: Item[] = [];
  #heldBytes = 0;
  #isHeld = false;
  #ended = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, way: Way, judge: (data: Buffer) => Verdict, cut: () => void) {
    this.#from = from;
    this.#to = to;
    this.#way = way;
    from.on('data', (data: Buffer) => {
      const verdict = judge(data);
      if (verdict === 'cut') return cut();
      if (verdict === 'hold') this.#isHeld = true;
      this.#push({ data, due: this.#due() }, data.length);
      if (verdict === 'cut-after') this.#push({ news: 'cut', due: this.#due() });
    });
    from.on('end', () => {
      this.#ended = true;
      this.#push({ news: 'ended', due: this.#due() });
    });
    from.on('close', () => {
      if (!this.#ended) this.#push({ news: 'broken', due: this.#due() });
    });
    to.on('drain', () => from.resume());
  }

  resume(): void {
    this.#isHeld = false;
    this.#flush();
  }

  discard(): void {
    this.#isHeld = true;
    this.#items = [];
    clearTimeout(this.#timer);
  }

  #due(): number {
    return performance.now() + this.#way.latency;
  }

  #push(item: Item, bytes = 0): void {
    this.#items.push(item);
    this.#heldBytes += bytes;
    this.#flush();
    if (this.#heldBytes > HELD_BYTES) this.#from.pause();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    for (let item = this.#items[0]; item && !this.#isHeld && !this.#way.silent; item = this.#items[0]) {
      const wait = item.due - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#flush(), Math.ceil(wait));
        return;
      }
      this.#items.shift();
      if ('news' in item) this.#announce(item.news);
      else this.#write(item.data);
    }
  }

  #write(data: Buffer): void {
    if (this.#to.destroyed) return;
    this.#heldBytes -= data.length;
    // Either the receiver is slow, and 'drain' goes on, or what was held is gone.
    if (!this.#to.write(data)) this.#from.pause();
    else if (this.#heldBytes <= HELD_BYTES) this.#from.resume();
  }

  #announce(news: 'ended' | 'broken' | 'cut'): void {
    if (news === 'broken') breakOff(this.#to);
    // An orderly end also after a cut: a reset would make the receiver drop bytes it has not read yet.
    else if (!this.#to.destroyed) this.#to.end();
    if (news !== 'cut') return;
    this.#ended = true;
    breakOff(this.#from);
  }
}

/** Ends a connection by RST where that is possible: while its orderly end is under way, a reset fails and leaks it. */
export function breakOff(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
