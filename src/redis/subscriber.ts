import { after, OVERDUE, type Timer, within } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { WakeUp } from '../lease/store.js';
import type { RedisClient, RedisSubscriberClient } from './client.js';
import { presentable } from './errors.js';

/** How long the server may take to confirm a subscription or to answer a ping. */
const ANSWER_TIME = 2_000;
/** A connection that died silently shows no event at all, so it is asked now and then while somebody listens. */
const PING_EVERY = 5_000;
/** How long an unused connection is kept: a busy key's next waiter comes soon, an idle process should end. */
const LINGER = 2_000;

type Listener = (wakeUp: WakeUp) => void;

interface Channel {
  readonly listeners: Set<Listener>;
  /** Settles with the server's confirmation. */
  confirmed: Promise<unknown>;
}

/**
 * The one subscriber connection of a client, opened at the first use, with its channels counted.
 *
 * After a reconnect it subscribes again and calls every listener once: what was published in between is gone.
 */
export class Subscriber {
  readonly #redis: RedisClient;
  /** What ends the name of the channel that only this process subscribes to: that it does tells that it is there. */
  readonly #own: string;
  readonly #emit: Emit;
  readonly #channels = new Map<string, Channel>();
  #connection: RedisSubscriberClient | undefined;
  /** Whether a message that is published now would be heard. */
  connected = false;
  #pinging: Timer | undefined;
  #closing: Timer | undefined;

  constructor(redis: RedisClient, receiver: string, emit: Emit) {
    this.#redis = redis;
    this.#own = `:${receiver}`;
    this.#emit = emit;
  }

  /** Resolves once the server has confirmed the subscription; the function that it gives ends it. */
  async listen(name: string, listener: Listener): Promise<() => void> {
    const connection = this.#open();
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      channel = { listeners: new Set(), confirmed: connection.subscribe(name, name + this.#own) };
      this.#channels.set(name, channel);
    }
    channel.listeners.add(listener);
    const stop = () => this.#stop(name, listener);
    try {
      if ((await within(channel.confirmed, ANSWER_TIME)) === OVERDUE) {
        throw new Error(`Redis did not confirm a subscription within ${ANSWER_TIME} ms`);
      }
    } catch (error) {
      stop();
      throw presentable(error);
    }
    return stop;
  }

  close(): void {
    this.#pinging?.stop();
    this.#closing?.stop();
    this.#channels.clear();
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.disconnect();
  }

  #stop(name: string, listener: Listener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#channels.delete(name);
    // In order behind the subscribe: a new listener's subscribe comes after it.
    this.#connection?.unsubscribe(name, name + this.#own).catch(() => {});
    if (this.#channels.size === 0) {
      this.#pinging?.stop();
      this.#closing = after(LINGER, () => this.close()).unref();
      // A process that has nothing else to do ends at once.
      this.#connection?.stream?.unref();
    }
  }

  #open(): RedisSubscriberClient {
    this.#closing?.stop();
    if (this.#channels.size === 0) this.#pingSoon();
    this.#connection?.stream?.ref();
    if (this.#connection) return this.#connection;
    const connection = this.#redis.duplicate({
      // Ours is the only one that knows what to do after a reconnect: subscribe, have it confirmed, then look.
      autoResubscribe: false,
      // The bounds here are our own. A ping that ioredis gave up would look like one of a closed connection.
      commandTimeout: undefined,
      // Nor does it ever give up: a caller that waits has no other way to hear of a release.
      retryStrategy: (times: number) => Math.min(times * 50, 1_000),
      maxRetriesPerRequest: null,
      enableOfflineQueue: true,
      enableReadyCheck: false,
    });
    this.#connection = connection;
    let connectedBefore = false;
    connection.on('message', (name, message) => this.#wake(name, message));
    // Without a listener an error event would end the process. Each retry of the connection brings one.
    connection.on('error', (error) => this.#emit({ type: 'subscriber-down', error: presentable(error) }));
    connection.on('ready', () => {
      if (connectedBefore) void this.#resubscribe(connection);
      connectedBefore = true;
      this.connected = true;
    });
    // Whoever waits finds out now whether the server can be reached, and not at the end of a lease.
    connection.on('close', () => {
      if (!this.connected || this.#connection !== connection) return;
      this.connected = false;
      for (const name of this.#channels.keys()) this.#wake(name);
    });
    // The caller's retryStrategy gave up: nobody hears anything here any more. The next listener opens a new one.
    connection.on('end', () => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#channels.clear();
    });
    return connection;
  }

  #wake(name: string, message = 'look'): void {
    const [turn = '', expiresIn] = message.split(' ');
    const wakeUp = expiresIn === undefined ? 'look' : { turn, expiresIn: Number(expiresIn) };
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener(wakeUp);
  }

  async #resubscribe(connection: RedisSubscriberClient): Promise<void> {
    const names = [...this.#channels.keys()];
    if (names.length === 0) return;
    const confirmed = connection.subscribe(...names.flatMap((name) => [name, name + this.#own]));
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel) channel.confirmed = confirmed;
    }
    try {
      await confirmed;
      for (const name of names) this.#wake(name);
    } catch {
      // The connection broke again: the next 'ready' comes here.
    }
  }

  #pingSoon(): void {
    this.#pinging?.stop();
    this.#pinging = after(PING_EVERY, () => void this.#ping()).unref();
  }

  async #ping(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) return;
    try {
      if ((await within(connection.ping(), ANSWER_TIME)) === OVERDUE) {
        this.#emit({ type: 'subscriber-down', error: new Error('the subscriber connection went silent') });
        connection.disconnect(true);
      }
    } catch {
      // It closed meanwhile, and is connecting again by itself.
    }
    if (this.#channels.size > 0) this.#pingSoon();
  }
}
