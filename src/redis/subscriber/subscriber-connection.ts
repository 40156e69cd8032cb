import { AnswerTimer, after, now, stop, type Timer } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
import type { RedisSubscriberClient } from '../client.js';
import { presentable } from '../errors.js';

/** How long the server may take to answer SUBSCRIBE, UNSUBSCRIBE or PING; milliseconds. */
const ANSWER_TIME = 1_000;
/** How long connecting may take, from the start to `ready`; less than the time between two pings of one node; milliseconds. */
const CONNECT_TIME = 3_500;
/**
 * How long an unused connection stays open: a busy key needs it again soon, an idle process should exit; milliseconds.
 */
const LINGER = 2_000;

/** The commands for wake-ups: `sharded` (SSUBSCRIBE, SPUBLISH) if the server has them, else `classic`. */
export type PubSub = 'sharded' | 'classic';

/** Settings that depend on the topology. */
export interface SubscriberSettings {
  readonly pubsub: PubSub;
  /** Milliseconds between two pings. */
  readonly pingEvery: number;
}

/** Callbacks of a subscriber connection. */
export interface SubscriberHooks {
  heard(channel: string, message: string): void;
  /** The connection is ready. It has no subscriptions yet. */
  up(): void;
  /** All subscriptions of the connection are lost. */
  down(): void;
  /** Some channels have moved to another node. The server does not say which. */
  moved(): void;
  /** The connection is closed and does not come back. */
  ended(): void;
}

/** One connection to one server, for wake-ups only. It reconnects by itself; its owner subscribes again. */
export class SubscriberConnection {
  /** Options for the duplicate of a client. */
  static readonly SETTINGS: Record<string, unknown> = {
    // Only `Subscriber` knows what to do after a reconnect: subscribe, wait for the confirmation, then look.
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    // Time limits are set here. A ping that ioredis timed out would look like the ping of a closed connection.
    commandTimeout: undefined,
    // Reconnect without end: a waiting caller has no other way to learn of a release.
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    enableReadyCheck: false,
    // Connect at once: no command is sent before the connection is ready.
    lazyConnect: false,
    // Channel names are complete. They are published by a script, whose arguments ioredis does not prefix.
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
  #retired = false;
  #pinging: Timer | undefined;
  #closing: Timer | undefined;

  constructor(
    client: RedisSubscriberClient,
    { pubsub, pingEvery }: SubscriberSettings,
    emit: Emit,
    hooks: SubscriberHooks,
  ) {
    this.#client = client;
    this.#hooks = hooks;
    this.#emit = emit;
    this.#sharded = pubsub === 'sharded';
    this.#pingEvery = pingEvery;
    client.on('message', hooks.heard);
    client.on('smessage', hooks.heard);
    // ioredis emits `error` at each failed connect, and Node throws it if there is no listener.
    client.on('error', (error) => {
      if (this.#closed) return;
      emit({ type: 'subscriber-down', error: presentable(error) });
      // After a moved slot, ioredis 5 may match answers to the wrong commands, so close the connection.
      if (this.#up) this.#destroyStream();
    });
    client.on('ready', () => {
      if (this.#closed) return;
      this.#up = true;
      // Another server of another version may have taken its place.
      this.#sharded = pubsub === 'sharded';
      hooks.up();
    });
    client.on('moved', hooks.moved);
    client.on('close', () => this.#down());
    client.on('end', () => this.#end());
    this.#schedulePing();
  }

  get up(): boolean {
    return this.#up;
  }

  /** Marks the connection as in use until `leave`. */
  use(name: string): void {
    stop(this.#closing);
    this.#client.stream?.ref();
    this.#names.add(name);
  }

  /** Resolves with the server's confirmation. All channels of one call must be in one slot. */
  async subscribe(...channels: string[]): Promise<void> {
    if (this.#sharded) {
      try {
        await this.#watched(this.#client.ssubscribe(...channels));
        return;
      } catch (error) {
        if (!isUnknownCommand(error)) throw error;
        this.#sharded = false;
      }
    }
    await this.#watched(this.#client.subscribe(...channels));
  }

  /** The unsubscribe is sent in order: a subscribe of a new listener comes after it. */
  leave(name: string, ...channels: string[]): void {
    this.#names.delete(name);
    if (this.#up) {
      const left = this.#sharded ? this.#client.sunsubscribe(...channels) : this.#client.unsubscribe(...channels);
      void this.#watched(left);
    }
    if (this.#names.size > 0) return;
    // The process may exit if it has nothing else to do.
    this.#client.stream?.unref();
    if (this.#up && !this.#retired) this.#closing = after(LINGER, () => this.close()).unref();
    else this.close();
  }

  /** Closes the connection as soon as it is not used any more. */
  retire(): void {
    this.#retired = true;
    if (this.#names.size === 0) this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#end();
    // A connection that is closed during a TLS handshake can fail twice, but ioredis listens once. Without this
    // listener, the second error would end the process.
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
    stop(this.#pinging);
    stop(this.#closing);
    this.#hooks.ended();
  }

  /** The `disconnect` of ioredis waits for the server, which may be the one that does not answer. */
  #destroyStream(): void {
    this.#client.stream?.destroy();
  }

  /** A connection that died silently emits no event. A command without an answer shows it, whoever has left meanwhile. */
  #watched<T>(answer: Promise<T>): Promise<T> {
    const { stream } = this.#client;
    const timer = new AnswerTimer(ANSWER_TIME, () => {
      // A connection that broke in the meantime is already reconnecting.
      if (this.#up && this.#client.stream === stream) this.#replace();
    });
    timer.unref();
    const stopTimer = () => timer.stop();
    answer.then(stopTimer, stopTimer);
    return answer;
  }

  /** Not stopped or restarted by those who come and go: they would put the next ping off without end. */
  #schedulePing(): void {
    this.#pinging = after(this.#pingEvery, () => {
      this.#schedulePing();
      if (this.#up) void this.#watched(this.#client.ping());
      else if (now() - this.#connectingSince > CONNECT_TIME) this.#replace();
    }).unref();
  }

  #replace(): void {
    this.#emit({ type: 'subscriber-down', error: new Error('the subscriber connection went silent') });
    this.#connectingSince = now();
    this.#destroyStream();
  }
}

function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && /unknown command/i.test(error.message);
}
