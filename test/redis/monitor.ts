import { randomUUID } from 'node:crypto';
import { connect as connectPlain, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as connectTls } from 'node:tls';
import { Redis } from 'ioredis';

/** What a monitor waits for: so many lines that match. */
interface Awaited {
  readonly matches: (line: string[]) => boolean;
  left: number;
  readonly resolve: () => void;
}

/**
 * What one server was sent, in its own words: the verb in lower case, then the arguments. Not ioredis's `monitor()`:
 * lines that reach it in one chunk with the answer to MONITOR, as on a server with others' traffic, throw in its parser.
 */
export class Monitor {
  readonly #lines: string[][] = [];
  readonly #awaited = new Set<Awaited>();
  readonly #client: Redis;
  readonly #socket: Socket;

  private constructor(client: Redis, socket: Socket) {
    this.#client = client;
    this.#socket = socket;
  }

  static async start(url: string): Promise<Monitor> {
    const { protocol, hostname, port, username, password } = new URL(url);
    const to = { host: hostname, port: Number(port || 6379) };
    const socket = protocol === 'rediss:' ? connectTls(to) : connectPlain(to);
    const monitor = new Monitor(new Redis(url), socket);
    const login = [username, password].filter((part) => part !== '').map((part) => `"${decodeURIComponent(part)}"`);
    socket.write(`${login.length > 0 ? `AUTH ${login.join(' ')}\r\n` : ''}MONITOR\r\n`);
    let answersLeft = login.length > 0 ? 2 : 1;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      createInterface({ input: socket }).on('line', (line) => {
        if (answersLeft === 0) monitor.#hear(line);
        else if (line !== '+OK') reject(new Error(`MONITOR: ${line}`));
        else if (--answersLeft === 0) resolve();
      });
    });
    socket.on('error', () => {});
    return monitor;
  }

  /** All commands that the server was sent until now with `word` in one of their arguments. */
  async about(word: string): Promise<string[][]> {
    // A monitor hears of a command later than its sender of the reply.
    const marker = randomUUID();
    await this.#client.echo(marker);
    await this.seen(([, said]) => said === marker);
    return this.#lines.filter((line) => line.some((part, index) => index > 0 && part.includes(word)));
  }

  /** Resolves once the server was sent `count` commands that match. */
  seen(matches: (line: string[]) => boolean, count = 1): Promise<void> {
    const left = count - this.#lines.filter(matches).length;
    if (left <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#awaited.add({ matches, left, resolve });
    });
  }

  stop(): void {
    this.#socket.destroy();
    this.#client.disconnect();
  }

  /** `+1795366314.000706 [0 127.0.0.1:40828] "evalsha" "66ea…"` */
  #hear(line: string): void {
    const [, source, quoted] = /^\+[\d.]+ \[\d+ (\S+)\] "(.*)"$/.exec(line) ?? [];
    // What the scripts themselves do was sent by nobody.
    if (quoted === undefined || source === 'lua') return;
    const [verb = '', ...args] = quoted.split('" "').map((part) => part.replace(/\\"/g, '"'));
    const heard = [verb.toLowerCase(), ...args];
    this.#lines.push(heard);
    for (const awaited of this.#awaited) {
      if (!awaited.matches(heard) || --awaited.left > 0) continue;
      this.#awaited.delete(awaited);
      awaited.resolve();
    }
  }
}
