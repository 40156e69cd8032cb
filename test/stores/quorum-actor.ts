import type { Redis } from 'ioredis';
import { emitOf } from '../../src/base/events.js';
import { RedisStore } from '../../src/redis/store.js';
import { QuorumStore } from '../../src/stores/quorum.js';
import type { LeaseStore } from '../../src/waiting/store.js';
import type { RedisGroup } from '../support/servers/index.js';
import { type ActorOptions, connect, Party, PREFIX } from '../waiting/actors.js';

/** How long one command may take. */
const COMMAND_TIME = 2_000;
/** How long those who wait may take to come for a key that is passed on. */
const HEARD = 50;

export interface QuorumOptions {
  /** Default: through no proxy. */
  readonly urls?: readonly string[];
  readonly redis?: ActorOptions['redis'];
  /** Without it wake-ups are heard. */
  readonly pollDelay?: () => number;
  readonly passOnAfter?: number;
  readonly wrap?: (nodes: LeaseStore[]) => LeaseStore[];
}

/** A client of several nodes, put together as the extension does. */
export class QuorumActor extends Party {
  readonly clients: readonly Redis[];

  constructor(
    { nodes }: Pick<RedisGroup, 'nodes'>,
    { urls, redis, wrap = (stores) => stores, ...room }: QuorumOptions = {},
  ) {
    const clients = (urls ?? nodes.map(({ url }) => url)).map((url) => connect(url, redis));
    const wakeUps = room.pollDelay === undefined;
    const options = { keyPrefix: PREFIX, commandTimeout: COMMAND_TIME, wakeUps, offerTime: 0 };
    super(
      (emit) =>
        new QuorumStore(
          wrap(clients.map((client, node) => new RedisStore(client, options, emitOf(node, emit)))),
          HEARD,
          emit,
        ),
      room,
    );
    this.clients = clients;
  }

  disconnect(): void {
    for (const client of this.clients) client.disconnect();
  }
}

export const polled = { pollDelay: () => 20 };
