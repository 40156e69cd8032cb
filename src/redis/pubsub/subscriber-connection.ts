import { after, now, OVERDUE, type Timer, within } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
import type { RedisSubscriberClient } from '../client.js';
import { presentable } from '../errors.js';

/** A connection that died silently shows no event at all, so it is asked now and then while somebody listens. */
const PONG_TIME = 1_000;
/** How long connecting may take, from the first byte to the server's word. */
const CONNECT_TIME = 5_000;
/** How long an unused connection is kept: a busy key's next waiter comes soon, an idle process should end. */
const LINGER = 2_000;

/** Which verbs wake-ups go by; `sharded` where the server has those. */
export type PubSub = 'sharded' | 'classic';

/** How to deal with the server. */
export interface Manner {
  readonly pubsub: PubSub;
  /** Milliseconds between two pings. */
  readonly pingEvery: number;
}

/** What is told of a connection. */
export interface SubscriberHooks {
  heard(channel: string, message: string): void;
  /** It can be subscribed on; nothing is yet. */
  up(): void;
  /** Nothing that was subscribed is heard any more. */
  down(): void;
  /** Some of what was subscribed is another node's now, and the server does not say what. */
  moved(): void;
  /** It is closed, and does not come back. */
  ended(): void;
}

/** One connection to one server, for wake-ups alone. It connects again by itself, and leaves the rest to its owner. */
export class SubscriberConnection {
  /** How the duplicate of a client has to be. */
  static readonly SETTINGS: Record<string, unknown> = {
    // Ours is the only one that knows what to do after a reconnect: subscribe, have it confirmed, then look.
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    // The bounds here are our own. A ping that ioredis gave up would look like one of a closed connection.
    commandTimeout: undefined,
    // Nor does it ever give up: a caller that waits has no other way to hear of a release.
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    enableReadyCheck: false,
    // Nothing is sent before it is connected.
    lazyConnect: false,
    // The names that come here are whole. What publishes them is a script, whose arguments ioredis does not touch.
    keyPrefix: '',
  };

  readonly #client: RedisSubscriberClient;
  readonly #hooks: SubscriberHooks;
  readonly #emit: Emit;
  readonly #names = new Set<string>();
  readonly #pingEvery: number;
  #sharded: boolean;
  #up = false;
  #connectingSince = now();
  #closed = false;
  #pinging: Timer | undefined;
  #closing: Timer | undefined;

  constructor(client: RedisSubscriberClient, { pubsub, pingEvery }: Manner, emit: Emit, hooks: SubscriberHooks) {
    this.#client = client;
    this.#hooks = hooks;
    this.#emit = emit;
    this.#sharded = pubsub === 'sharded';
    this.#pingEvery = pingEvery;
    client.on('message', hooks.heard);
    client.on('smessage', hooks.heard);
    // Without a listener an error event would end the process. Each retry of the connection brings one.
    client.on('error', (error) => {
      if (this.#closed) return;
      emit({ type: 'subscriber-down', error: presentable(error) });
      // An ioredis 5 that was told of a moved slot has answers and commands mixed up.
      if (this.#up) this.#break();
    });
    client.on('ready', () => {
      if (this.#closed) return;
      this.#up = true;
      // A server of another version may have come in its place.
      this.#sharded = pubsub === 'sharded';
      hooks.up();
    });
    client.on('moved', hooks.moved);
    client.on('close', () => this.#down());
    client.on('end', () => this.#end());
  }

  get up(): boolean {
    return this.#up;
  }

  /** From now on until `leave` this connection is in use. */
  use(name: string): void {
    this.#closing?.stop();
    if (this.#names.size === 0) this.#pingSoon();
    this.#client.stream?.ref();
    this.#names.add(name);
  }

  /** Resolves with the server's confirmation. All names of one call are in one slot. */
  async subscribe(...channels: string[]): Promise<void> {
    if (this.#sharded) {
      try {
        await this.#client.ssubscribe(...channels);
        return;
      } catch (error) {
        if (!isUnknownCommand(error)) throw error;
        this.#sharded = false;
      }
    }
    await this.#client.subscribe(...channels);
  }

  /** In order behind the subscribe: a new listener's subscribe comes after it. */
  leave(name: string, ...channels: string[]): void {
    this.#names.delete(name);
    if (this.#up) {
      const left = this.#sharded ? this.#client.sunsubscribe(...channels) : this.#client.unsubscribe(...channels);
      left.catch(() => {});
    }
    if (this.#names.size > 0) return;
    this.#pinging?.stop();
    // A process that has nothing else to do ends at once.
    this.#client.stream?.unref();
    if (this.#up) this.#closing = after(LINGER, () => this.close()).unref();
    else this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#end();
    // One that is closed in the middle of a TLS handshake can fail twice, and ioredis listens once: without a listener
    // the second error would end the process.
    this.#client.stream?.on('error', () => {});
    this.#client.disconnect();
  }

  #down(): void {
    if (!this.#up) return;
    this.#up = false;
    this.#connectingSince = now();
    this.#hooks.down();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#up = false;
    this.#pinging?.stop();
    this.#closing?.stop();
    this.#hooks.ended();
  }

  /** ioredis' own `disconnect` waits for the other side, which may be what does not answer. */
  #break(): void {
    this.#client.stream?.destroy();
  }

  async #isSilent(): Promise<boolean> {
    return (await within(this.#client.ping(), PONG_TIME).catch(() => undefined)) === OVERDUE;
  }

  #pingSoon(): void {
    this.#pinging?.stop();
    this.#pinging = after(this.#pingEvery, () => void this.#ping()).unref();
  }

  async #ping(): Promise<void> {
    const { stream } = this.#client;
    const silent = this.#up ? await this.#isSilent() : now() - this.#connectingSince > CONNECT_TIME;
    // One that broke meanwhile is connecting again by itself.
    if (silent && !this.#closed && this.#client.stream === stream) {
      this.#emit({ type: 'subscriber-down', error: new Error('the subscriber connection went silent') });
      this.#connectingSince = now();
      this.#break();
    }
    if (this.#names.size > 0 && !this.#closed) this.#pingSoon();
  }
}

function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && /unknown command/i.test(error.message);
}
