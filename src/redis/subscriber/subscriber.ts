import { after, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
import { Reply } from '../../base/reply.js';
import type { WakeUp, Watch } from '../../waiting/store.js';
import { isRedirection, isReply, presentable } from '../errors.js';
import type { Nodes } from '../topology/nodes.js';
import { SubscriberConnection } from './subscriber-connection.js';

/** How long a server may take to confirm a subscription; milliseconds. */
const ANSWER_TIME = 2_000;
/** Pause before lost channels are subscribed to again; milliseconds. */
const REPAIR_EVERY = 250;

type WakeListener = (wakeUp: WakeUp) => void;

/** A channel is `at` a connection from when it is asked for there, and is `heard` from the server's confirmation. */
interface Channel {
  readonly listeners: Set<WakeListener>;
  at: SubscriberConnection | undefined;
  heard: boolean;
  /** Settles with the first confirmation or refusal of a server. */
  readonly confirmed: Reply<void>;
  /** Whether it was ever confirmed. */
  known: boolean;
}

/**
 * The channels of a client and their listeners, each on a connection to the server that has the channel. There is one
 * connection for each such server, opened at the first use.
 *
 * A channel whose connection has ended, or whose name has another address, is subscribed to again on the right server. Its
 * listeners are called when it is lost and when it is subscribed again, because messages in between are lost.
 */
export class Subscriber {
  readonly #nodes: Nodes;
  /** The channel that only this process subscribes to has this suffix. The subscription shows that the process is alive. */
  readonly #receiverSuffix: string;
  readonly #emit: Emit;
  readonly #channels = new Map<string, Channel>();
  readonly #connections = new Map<string, SubscriberConnection>();
  /** Addresses of servers that were reported as failed: each retry and each new caller would report them again. */
  readonly #reported = new Set<string>();
  #repairing: Timer | undefined;
  readonly #stopListening: () => void;

  constructor(nodes: Nodes, receiver: string, emit: Emit) {
    this.#nodes = nodes;
    this.#receiverSuffix = `:${receiver}`;
    this.#emit = emit;
    this.#stopListening = nodes.onChange(() => {
      this.#placeAll();
      // They may be connections to servers of which there is no other news.
      for (const connection of this.#connections.values()) if (connection.unused) connection.close();
    });
  }

  /** Resolves when the server has confirmed the subscription. */
  async listen(name: string, listener: WakeListener): Promise<Watch> {
    const channel = this.#channels.get(name) ?? this.#add(name);
    channel.listeners.add(listener);
    const close = () => this.#stop(name, channel, listener);
    try {
      if ((await within(channel.confirmed.promise, ANSWER_TIME)) === OVERDUE) {
        throw new Error(`Redis did not confirm a subscription within ${ANSWER_TIME} ms`);
      }
    } catch (refusal) {
      const error = presentable(refusal);
      if (this.#channels.has(name)) this.#report(this.#nodes.addressOf(name), error);
      close();
      throw error;
    }
    return {
      close,
      get hears() {
        return channel.heard;
      },
    };
  }

  close(): void {
    for (const channel of this.#channels.values()) channel.confirmed.reject(new Error('The client was closed'));
    this.#channels.clear();
    for (const connection of this.#connections.values()) connection.close();
    stop(this.#repairing);
    this.#stopListening();
  }

  #add(name: string): Channel {
    const unsubscribed = { at: undefined, heard: false, known: false };
    const channel: Channel = { listeners: new Set<WakeListener>(), confirmed: new Reply<void>(), ...unsubscribed };
    this.#channels.set(name, channel);
    this.#place(name, channel);
    return channel;
  }

  #stop(name: string, channel: Channel, listener: WakeListener): void {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    if (this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    this.#leave(name, channel);
  }

  #placeAll(): void {
    for (const [name, channel] of this.#channels) this.#place(name, channel);
  }

  /** Subscribes the channel on the server that has it now, if it is not asked for there. */
  #place(name: string, channel: Channel): void {
    const connection = this.#connectionFor(name);
    if (channel.at === connection && connection !== undefined) return;
    this.#leave(name, channel);
    this.#scheduleRepair();
    channel.at = connection;
    if (connection) void this.#subscribe(name, channel, connection);
  }

  async #subscribe(name: string, channel: Channel, connection: SubscriberConnection): Promise<void> {
    try {
      await connection.subscribe(name, name + this.#receiverSuffix);
    } catch (error) {
      if (channel.at !== connection) return;
      channel.at = undefined;
      this.#scheduleRepair();
      // After a redirection or a broken connection, another try follows. Any other error is a refusal by the server.
      if (isRedirection(error) || !isReply(error)) return;
      channel.confirmed.reject(error);
      // Whoever listens already is not refused.
      if (channel.known) this.#report(this.#nodes.addressOf(name), presentable(error));
      return;
    }
    if (channel.at !== connection) return;
    channel.heard = true;
    for (const address of this.#reported) {
      if (this.#connections.get(address) === connection) this.#reported.delete(address);
    }
    channel.confirmed.resolve();
    if (channel.known) this.#wake(name);
    channel.known = true;
  }

  #leave(name: string, channel: Channel): void {
    const { at } = channel;
    Object.assign(channel, { at: undefined, heard: false });
    at?.leave(name, name + this.#receiverSuffix);
  }

  /** Tries again until all channels are subscribed: no event may tell that the topology has changed. */
  #scheduleRepair(): void {
    this.#repairing ??= after(REPAIR_EVERY, () => {
      this.#repairing = undefined;
      if ([...this.#channels.values()].every(({ heard }) => heard)) return;
      this.#nodes.refreshTopology();
      this.#placeAll();
      this.#scheduleRepair();
    }).unref();
  }

  #connectionFor(name: string): SubscriberConnection | undefined {
    const address = this.#nodes.addressOf(name);
    if (address === undefined) {
      this.#nodes.refreshTopology();
      return undefined;
    }
    const known = this.#connections.get(address);
    if (known) return known;
    const client = this.#nodes.open(address, SubscriberConnection.SETTINGS);
    if (client === undefined) return undefined;
    const connection: SubscriberConnection = new SubscriberConnection(client, this.#nodes, {
      heard: (channel, message) => this.#wake(channel, message),
      failed: (error) => this.#report(address, presentable(error)),
      ended: () => {
        this.#connections.delete(address);
        this.#lost(connection);
      },
    });
    this.#connections.set(address, connection);
    return connection;
  }

  #report(address: string | undefined, error: Error): void {
    if (address === undefined || this.#reported.has(address)) return;
    this.#reported.add(address);
    this.#emit({ type: 'subscriber-down', error });
  }

  /**
   * Wakes the callers of the lost channels, so that they learn now, and not at the end of a lease, whether the server
   * can be reached.
   */
  #lost(connection: SubscriberConnection): void {
    const affected = [...this.#channels].filter(([, { at }]) => at === connection);
    if (affected.length === 0) return;
    const heard = affected.filter(([, channel]) => channel.heard);
    for (const [, channel] of affected) Object.assign(channel, { at: undefined, heard: false });
    this.#nodes.refreshTopology();
    this.#scheduleRepair();
    for (const [name] of heard) this.#wake(name);
  }

  #wake(name: string, message = 'look'): void {
    const wakeUp = wakeUpOf(message);
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener(wakeUp);
  }
}

/** More characters than a message of this package has. */
const LONGEST_MESSAGE = 256;

/** A message is `look`, `next <holder>`, or `<holder> <milliseconds>`. */
function wakeUpOf(message: string): WakeUp {
  if (message.length > LONGEST_MESSAGE) return 'look';
  const [first = '', second] = message.split(' ');
  if (second === undefined) return 'look';
  return first === 'next' ? { hintedTo: second } : { offeredTo: first, expiresIn: Number(second) };
}
