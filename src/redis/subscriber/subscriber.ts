import { after, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import type { Emit, FencedLockEvent } from '../../base/events.js';
import type { WakeUp, Watch } from '../../waiting/store.js';
import { isRedirection, presentable } from '../errors.js';
import type { Nodes } from '../topology/nodes.js';
import { SubscriberConnection } from './subscriber-connection.js';

/** How long a server may take to confirm a subscription; milliseconds. */
const ANSWER_TIME = 2_000;
/** Pause before lost channels are subscribed to again; milliseconds. */
const REPAIR_EVERY = 250;

type WakeListener = (wakeUp: WakeUp) => void;

/** A channel is `at` a connection, is `asked` for there, and is `heard` from the server's confirmation until the connection is lost. */
interface Channel {
  readonly listeners: Set<WakeListener>;
  at: SubscriberConnection | undefined;
  /** Identifies the subscription in flight. The answer to an older one is ignored. */
  asked: object | undefined;
  heard: boolean;
  /** Settles with the first confirmation or refusal of a server. */
  readonly confirmed: Promise<void>;
  confirm(): void;
  refuse(error: unknown): void;
  /** Whether it was ever confirmed. */
  known: boolean;
}

/**
 * The channels of a client and their listeners, each on a connection to the server that has the channel. There is one
 * connection for each such server, opened at the first use.
 *
 * A channel whose subscription is lost (its connection broke, or its slot has moved) is subscribed to again on the
 * right server. Its listeners are called when it is lost and when it is subscribed again, because messages in between
 * are lost. When the client has connected again, its connections for wake-ups do, too: the address may lead to another
 * server now, while the former one is up and keeps them.
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
  #stopListening: (() => void) | undefined;
  readonly #stopFollowing: () => void;

  constructor(nodes: Nodes, receiver: string, emit: Emit) {
    this.#nodes = nodes;
    this.#receiverSuffix = `:${receiver}`;
    this.#emit = emit;
    // Also for an unused connection, which may be used again.
    this.#stopFollowing = nodes.onReconnect(() => {
      for (const connection of this.#connections.values()) connection.connectAgain();
    });
  }

  /** Resolves when the server has confirmed the subscription. */
  async listen(name: string, listener: WakeListener): Promise<Watch> {
    const channel = this.#channels.get(name) ?? this.#add(name);
    channel.listeners.add(listener);
    const close = () => this.#stop(name, channel, listener);
    try {
      if ((await within(channel.confirmed, ANSWER_TIME)) === OVERDUE) {
        throw new Error(`Redis did not confirm a subscription within ${ANSWER_TIME} ms`);
      }
    } catch (refusal) {
      const error = presentable(refusal);
      if (this.#channels.has(name)) this.#reportAt(name, error);
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
    for (const [name, channel] of this.#channels) {
      channel.refuse(new Error('The client was closed'));
      this.#leave(name, channel);
    }
    this.#channels.clear();
    for (const connection of [...this.#connections.values()]) connection.close();
    this.#stopAll();
    this.#stopFollowing();
  }

  #add(name: string): Channel {
    let confirm = () => {};
    let refuse = (_: unknown) => {};
    const confirmed = new Promise<void>((resolve, reject) => {
      confirm = resolve;
      refuse = reject;
    });
    confirmed.catch(() => {});
    const unsubscribed = { at: undefined, asked: undefined, heard: false, known: false };
    const channel: Channel = { listeners: new Set<WakeListener>(), confirmed, confirm, refuse, ...unsubscribed };
    this.#stopListening ??= this.#nodes.onChange(() => this.#placeAll());
    this.#channels.set(name, channel);
    this.#place(name, channel);
    return channel;
  }

  #stop(name: string, channel: Channel, listener: WakeListener): void {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    if (this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    this.#leave(name, channel);
    if (this.#channels.size === 0) this.#stopAll();
  }

  /** Called when there are no channels: stops the timer and the listener. */
  #stopAll(): void {
    stop(this.#repairing);
    this.#repairing = undefined;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #placeAll(): void {
    for (const [name, channel] of this.#channels) this.#place(name, channel);
  }

  /** Subscribes the channel on the server that has it now, if it is not subscribed there. */
  #place(name: string, channel: Channel): void {
    const connection = this.#connectionFor(name);
    if (channel.at !== connection) {
      this.#leave(name, channel);
      channel.at = connection;
      connection?.use(name);
    }
    if (channel.heard) return;
    this.#scheduleRepair();
    if (connection?.up && channel.asked === undefined) void this.#subscribe(name, channel, connection);
  }

  async #subscribe(name: string, channel: Channel, connection: SubscriberConnection): Promise<void> {
    const asked = {};
    channel.asked = asked;
    try {
      await connection.subscribe(name, name + this.#receiverSuffix);
    } catch (error) {
      if (channel.asked !== asked) return;
      channel.asked = undefined;
      // After a redirection or a broken connection, another try follows. Any other error is a refusal by the server.
      if (isRedirection(error) || !connection.up) return;
      channel.refuse(error);
      // Whoever listens already is not refused.
      if (channel.known) this.#reportAt(name, presentable(error));
      return;
    }
    if (channel.asked !== asked) return;
    channel.asked = undefined;
    channel.heard = true;
    for (const address of this.#reported) {
      if (this.#connections.get(address) === connection) this.#reported.delete(address);
    }
    channel.confirm();
    if (channel.known) this.#wake(name);
    channel.known = true;
  }

  #leave(name: string, channel: Channel): void {
    channel.at?.leave(name, name, name + this.#receiverSuffix);
    Object.assign(channel, { at: undefined, asked: undefined, heard: false });
  }

  /** Tries again until all channels are subscribed: no event may tell that the topology has changed. */
  #scheduleRepair(): void {
    this.#repairing ??= after(REPAIR_EVERY, () => {
      this.#repairing = undefined;
      if ([...this.#channels.values()].every(({ heard }) => heard)) return;
      this.#nodes.refreshTopology();
      this.#placeAll();
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
    const connection: SubscriberConnection = new SubscriberConnection(
      client,
      this.#nodes,
      (event) => this.#report(address, event),
      {
        heard: (channel, message) => this.#wake(channel, message),
        up: () => this.#placeAll(),
        lost: () => this.#lost(connection),
        ended: () => {
          if (this.#connections.get(address) === connection) this.#connections.delete(address);
          this.#lost(connection);
        },
      },
    );
    this.#connections.set(address, connection);
    return connection;
  }

  #reportAt(name: string, error: Error): void {
    const address = this.#nodes.addressOf(name);
    if (address !== undefined) this.#report(address, { type: 'subscriber-down', error });
  }

  #report(address: string, event: FencedLockEvent): void {
    if (this.#reported.has(address)) return;
    this.#reported.add(address);
    this.#emit(event);
  }

  /**
   * Wakes the callers of the lost channels, so that they learn now, and not at the end of a lease, whether the server
   * can be reached.
   */
  #lost(connection: SubscriberConnection): void {
    const affected = [...this.#channels].filter(([, { at }]) => at === connection);
    if (affected.length === 0) return;
    for (const [, channel] of affected) Object.assign(channel, { asked: undefined, heard: false });
    this.#nodes.refreshTopology();
    this.#scheduleRepair();
    for (const [name, { known }] of affected) if (known) this.#wake(name);
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
