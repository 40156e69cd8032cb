import type { Redis } from 'ioredis';
import * as scripts from '../../src/redis/scripts.generated.js';

const names = new Map(Object.values(scripts).flatMap(({ name, sha1, lua }) => [sha1, lua].map((text) => [text, name])));

/**
 * A script on its way to the server, by its hash or by its text: the first of `args`. One that the server does not know is
 * sent twice.
 */
export interface SentScript {
  readonly name: string | undefined;
  readonly args: readonly unknown[];
  send(): Promise<unknown>;
}

/** From now on, `around` decides whether and when a script of this client is sent. */
export function aroundScripts(redis: Redis, around: (script: SentScript) => Promise<unknown>): void {
  for (const command of ['evalsha', 'eval'] as const) {
    const send = redis[command].bind(redis) as (...args: unknown[]) => Promise<unknown>;
    Object.defineProperty(redis, command, {
      configurable: true,
      value: (...args: unknown[]) => around({ name: names.get(args[0] as string), args, send: () => send(...args) }),
    });
  }
}
