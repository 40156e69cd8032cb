import type { Redis } from 'ioredis';
import * as scripts from '../../src/redis/scripts.generated.js';

const names = new Map(Object.values(scripts).flatMap(({ name, sha1, lua }) => [sha1, lua].map((text) => [text, name])));

/** A script on its way to the server, whether by its hash or by its text. */
export interface SentScript {
  readonly name: string | undefined;
  readonly args: readonly unknown[];
  send(): Promise<unknown>;
}

/** From now on, `around` decides on each script of this client when it is sent, and what is answered. */
export function aroundScripts(redis: Redis, around: (script: SentScript) => Promise<unknown>): void {
  for (const command of ['evalsha', 'eval'] as const) {
    const send = redis[command].bind(redis) as (...args: unknown[]) => Promise<unknown>;
    Object.defineProperty(redis, command, {
      configurable: true,
      value: (...args: unknown[]) => around({ name: names.get(args[0] as string), args, send: () => send(...args) }),
    });
  }
}
