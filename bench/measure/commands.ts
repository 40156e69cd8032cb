import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** The counter's own. */
const MARKER = 'bench-marker';

/**
 * Counts what a Redis is sent, by verb. It reads MONITOR as text and keeps nothing, because some contestants send
 * tens of thousands of commands a second. What scripts do on the server is not counted.
 */
export class CommandCounter {
  readonly #monitor: Socket;
  readonly #sender: Socket;
  #rest = '';
  #counts = new Map<string, number>();
  #markers = 0;
  #onMarker: (() => void) | undefined;

  private constructor(monitor: Socket, sender: Socket) {
    this.#monitor = monitor;
    this.#sender = sender;
    monitor.setEncoding('latin1').on('data', (text: string) => this.#read(text));
    sender.resume();
    for (const socket of [monitor, sender]) socket.on('error', () => {});
  }

  static async start(url: string): Promise<CommandCounter> {
    const { protocol, hostname, port, password } = new URL(url);
    if (protocol !== 'redis:' || password !== '') {
      throw new Error('Commands can be counted on a Redis without TLS and without a password only.');
    }
    const dial = () =>
      new Promise<Socket>((resolve, reject) => {
        const socket = connect(Number(port || 6379), hostname, () => resolve(socket));
        socket.once('error', reject);
      });
    const counter = new CommandCounter(await dial(), await dial());
    counter.#monitor.write('MONITOR\r\n');
    // The marker goes over the other connection: it must not overtake MONITOR.
    await once(counter.#monitor, 'data');
    await counter.reset();
    return counter;
  }

  /** Forgets what was sent until now. */
  async reset(): Promise<void> {
    await this.counts();
    this.#counts = new Map();
  }

  /** What was sent since `reset`. */
  async counts(): Promise<Readonly<Record<string, number>>> {
    // A monitor hears of a command later than its sender of the reply: our own comes behind all of them.
    const heard = new Promise<void>((resolve) => {
      this.#onMarker = resolve;
    });
    this.#sender.write(`ECHO ${MARKER}-${++this.#markers}\r\n`);
    await heard;
    return Object.fromEntries(this.#counts);
  }

  stop(): void {
    this.#monitor.destroy();
    this.#sender.destroy();
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\r\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#count(line);
  }

  /** +1700000000.123456 [0 127.0.0.1:50000] "set" "key" … */
  #count(line: string): void {
    const verbAt = line.indexOf('] "');
    if (verbAt < 0 || line.startsWith(' lua', line.indexOf('[') + 2)) return;
    const verb = line.slice(verbAt + 3, line.indexOf('"', verbAt + 3)).toLowerCase();
    if (verb === 'echo' && line.includes(MARKER)) {
      if (line.endsWith(`${MARKER}-${this.#markers}"`)) this.#onMarker?.();
      return;
    }
    this.#counts.set(verb, (this.#counts.get(verb) ?? 0) + 1);
  }
}

export function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** As one reads it: `12 evalsha, 3 publish`. */
export function inWords(counts: Readonly<Record<string, number>>): string {
  const most = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return most.map(([verb, count]) => `${count} ${verb}`).join(', ');
}
