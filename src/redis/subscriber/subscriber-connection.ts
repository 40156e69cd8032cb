import { AnswerTimer, after, stop, type Timer } from '../../base/clock.js';
import type { RedisSubscriberClient } from '../client.js';
import type { Nodes } from '../topology/nodes.js';

/** How long the server may take to answer SUBSCRIBE, UNSUBSCRIBE or PING; milliseconds. */
const ANSWER_TIME = 1_000;
/** The same where it has to be connected to first. */
const CONNECT_TIME = 3_500;

/** Callbacks of a subscriber connection. */
export interface SubscriberHooks {
  heard(channel: string, message: string): void;
  failed(error: unknown): void;
  /** The connection is closed with all its subscriptions, and does not come back. */
  ended(): void;
}

/** One connection to one server, for wake-ups only. Whatever goes wrong with it ends it: its owner opens another one. */
export class SubscriberConnection {
  /** Options for the duplicate of a client. */
  static readonly SETTINGS: Record<string, unknown> = {
    // Only `Subscriber` knows what to do after a reconnect: subscribe, wait for the confirmation, then look.
    retryStrategy: () => null,
    // Time limits are set here. A ping that ioredis timed out would look like the ping of a closed connection.
    commandTimeout: undefined,
    maxRetriesPerRequest: null,
    // Connect at once, and keep the first commands until then.
    lazyConnect: false,
    enableOfflineQueue: true,
    enableReadyCheck: false,
    // Channel names are complete. They are published by a script, whose arguments ioredis does not prefix.
    keyPrefix: '',
  };

  readonly #client: RedisSubscriberClient;
  readonly #hooks: SubscriberHooks;
  readonly #names = new Set<string>();
  readonly #nodes: Pick<Nodes, 'pubsub' | 'pingEvery'>;
  #closed = false;
  #pinging: Timer | undefined;

  constructor(client: RedisSubscriberClient, nodes: Pick<Nodes, 'pubsub' | 'pingEvery'>, hooks: SubscriberHooks) {
    this.#client = client;
    this.#hooks = hooks;
    this.#nodes = nodes;
    client.on('message', hooks.heard);
    client.on('smessage', hooks.heard);
    // ioredis emits `error` at each failed connect, and Node throws it if there is no listener. After a moved slot, ioredis 5
    // may match answers to the wrong commands.
    client.on('error', (error) => this.#fail(error));
    // Some channels have moved to another node: the server does not say which.
    client.on('moved', () => this.close());
    // What was sent first is watched for as long as connecting may take; whether the server answers is known sooner.
    client.on('ready', () => this.#ping());
    client.on('close', () => this.close());
    client.on('end', () => this.close());
    this.#schedulePing();
  }

  get unused(): boolean {
    return this.#names.size === 0;
  }

  /** Resolves with the server's confirmation. */
  async subscribe(name: string, receiver: string): Promise<void> {
    this.#names.add(name);
    this.#client.stream?.ref();
    const isSharded = this.#nodes.pubsub === 'sharded';
    await this.#watched(isSharded ? this.#client.ssubscribe(name, receiver) : this.#client.subscribe(name, receiver));
  }

  /**
   * The unsubscribe is sent in order: a subscribe of a new listener comes after it. A connection that nobody uses stays open,
   * because a busy key needs it again soon.
   */
  leave(name: string, receiver: string): void {
    this.#names.delete(name);
    if (this.#closed) return;
    const isSharded = this.#nodes.pubsub === 'sharded';
    const left = isSharded ? this.#client.sunsubscribe(name, receiver) : this.#client.unsubscribe(name, receiver);
    this.#watched(left).catch(() => {});
    if (!this.unused) return;
    // The process may exit if it has nothing else to do.
    if (this.#client.status === 'ready') this.#client.stream?.unref();
    else this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    stop(this.#pinging);
    // A connection that is closed during a TLS handshake can fail twice, but ioredis listens once. Without this
    // listener, the second error would end the process.
    this.#client.stream?.on('error', () => {});
    this.#client.disconnect();
    this.#hooks.ended();
  }

  #fail(error: unknown): void {
    if (this.#closed) return;
    this.#hooks.failed(error);
    this.close();
  }

  /** A connection that died silently emits no event. A command without an answer shows it, whoever has left meanwhile. */
  #watched<T>(answer: Promise<T>): Promise<T> {
    const timer = new AnswerTimer(this.#client.status === 'ready' ? ANSWER_TIME : CONNECT_TIME, () =>
      this.#fail(new Error('the subscriber connection went silent')),
    );
    timer.unref();
    const stopTimer = () => timer.stop();
    answer.then(stopTimer, stopTimer);
    return answer;
  }

  /** Not stopped or restarted by those who come and go: they would put the next ping off without end. */
  #schedulePing(): void {
    this.#pinging = after(this.#nodes.pingEvery, () => {
      this.#schedulePing();
      if (this.#client.status === 'ready') this.#ping();
    }).unref();
  }

  #ping(): void {
    this.#watched(this.#client.ping()).catch(() => {});
  }
}
