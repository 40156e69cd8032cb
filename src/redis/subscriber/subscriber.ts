import { after, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import type { Emit, FencedLockEvent } from '../../base/events.js';
import type { WakeUp, Watch } from '../../waiting/store.js';
import { isRedirection, presentable } from '../errors.js';
import type { Nodes } from '../topology/nodes.js';
import { type PubSub, SubscriberConnection, type SubscriberSettings } from './subscriber-connection.js';

/** How long a server may take to confirm a subscription; milliseconds. */
const ANSWER_TIME = 2_000;
/** Pause before lost channels are subscribed to again; milliseconds. */
const REPAIR_EVERY = 250;

type WakeListener = (wakeUp: WakeUp) => void;

interface Channel {
  readonly listeners: Set<WakeListener>;
  /** Settles with the first confirmation or refusal of a server. */
  readonly confirmed: Promise<void>;
  confirm(): void;
  refuse(error: unknown): void;
  /** The connection on which the channel is or will be subscribed. */
  at: SubscriberConnection | undefined;
  /**
   * The connection on which the subscription is confirmed, so that a message published now would arrive. While `at` is a
   * new connection, this is the one before it.
   */
  heardOn: SubscriberConnection | undefined;
  /** Identifies the subscription in flight. The answer to an older one is ignored. */
  asked: object | undefined;
  /** Whether it was ever confirmed. */
  known: boolean;
  /** Whether the listeners were woken because a new connection does not come about: a message may not arrive meanwhile. */
  warned: boolean;
}

const UNSUBSCRIBED = { at: undefined, heardOn: undefined, asked: undefined };

/**
 * The channels of a client and their listeners, each on a connection to the server that has the channel. There is one
 * connection for each such server, opened at the first use.
 *
 * A channel whose subscription is lost (its connection broke, or its slot has moved) is subscribed to again on the
 * right server. Its listeners are called when it is lost and when it is subscribed again, because messages in between
 * are lost. A connection whose client has connected again is replaced: its server may be up and no longer be the one that
 * the address leads to. If it is, the process must stay subscribed there, because a release passes over one that is not. So
 * a channel leaves its former connection when the subscription on the new one is confirmed.
 */
export class Subscriber {
  readonly #nodes: Nodes;
  readonly #settings: SubscriberSettings;
  /**
   * The suffix of the channel that only this process subscribes to. The subscription shows that the process is alive.
   */
  readonly #receiverSuffix: string;
  readonly #emit: Emit;
  readonly #channels = new Map<string, Channel>();
  readonly #connections = new Map<string, SubscriberConnection>();
  /**
   * Addresses of servers that were already reported as failed: each retry and each new caller would report them again.
   */
  readonly #reported = new Set<string>();
  #repairing: Timer | undefined;
  #stopListening: (() => void) | undefined;
  readonly #stopFollowing: () => void;

  constructor(nodes: Nodes, pubsub: PubSub, receiver: string, emit: Emit) {
    this.#nodes = nodes;
    this.#settings = { pubsub, pingEvery: nodes.pingEvery };
    this.#receiverSuffix = `:${receiver}`;
    this.#emit = emit;
    // As long as there are connections: an unused one may be used again.
    this.#stopFollowing = nodes.onReconnect(() => {
      const former = [...this.#connections.values()];
      this.#connections.clear();
      for (const connection of former) connection.retire();
      this.#placeAll();
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
        return isSettled(channel);
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
    const channel: Channel = {
      listeners: new Set<WakeListener>(),
      confirmed,
      confirm,
      refuse,
      known: false,
      warned: false,
      ...UNSUBSCRIBED,
    };
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
      const former = channel.at;
      channel.at = connection;
      channel.asked = undefined;
      connection?.use(name);
      if (former !== channel.heardOn) this.#leaveConnection(name, former);
    }
    if (isSettled(channel)) return;
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
    const former = channel.heardOn;
    channel.heardOn = connection;
    if (former !== connection) this.#leaveConnection(name, former);
    for (const address of this.#reported) {
      if (this.#connections.get(address) === connection) this.#reported.delete(address);
    }
    channel.confirm();
    if (channel.known) this.#wake(name);
    channel.known = true;
    channel.warned = false;
  }

  #leave(name: string, channel: Channel): void {
    const connections = new Set([channel.at, channel.heardOn]);
    Object.assign(channel, UNSUBSCRIBED);
    for (const connection of connections) this.#leaveConnection(name, connection);
  }

  #leaveConnection(name: string, connection: SubscriberConnection | undefined): void {
    connection?.leave(name, name, name + this.#receiverSuffix);
  }

  /** Tries again until all channels are subscribed: no event may tell that the topology has changed. */
  #scheduleRepair(): void {
    this.#repairing ??= after(REPAIR_EVERY, () => {
      this.#repairing = undefined;
      if ([...this.#channels.values()].every(isSettled)) return;
      this.#nodes.refreshTopology();
      this.#placeAll();
      this.#warn();
    }).unref();
  }

  /**
   * Wakes, once, the callers of channels that are still subscribed on a connection that was to be replaced: its server may
   * not be the one that has the key now.
   */
  #warn(): void {
    for (const [name, channel] of this.#channels) {
      if (isSettled(channel) || channel.heardOn === undefined || channel.warned) continue;
      channel.warned = true;
      this.#wake(name);
    }
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
      this.#settings,
      (event) => this.#report(address, event),
      {
        heard: (channel, message) => this.#wake(channel, message),
        up: () => this.#placeAll(),
        down: () => this.#lost(connection),
        moved: () => this.#lost(connection),
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
    const affected = [...this.#channels].filter(([, { at, heardOn }]) => at === connection || heardOn === connection);
    for (const [name, channel] of affected) {
      if (channel.heardOn === connection) channel.heardOn = undefined;
      if (channel.at === connection) channel.asked = undefined;
      else this.#leaveConnection(name, connection);
    }
    if (affected.length === 0) return;
    this.#nodes.refreshTopology();
    this.#scheduleRepair();
    for (const [name, { known, heardOn }] of affected) if (known && heardOn === undefined) this.#wake(name);
  }

  #wake(name: string, message = 'look'): void {
    const wakeUp = wakeUpOf(message);
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener(wakeUp);
  }
}

/** Whether it is subscribed where it should be. */
function isSettled({ at, heardOn }: Channel): boolean {
  return heardOn !== undefined && heardOn === at;
}

/** More characters than a message of this package has. */
const LONGEST_MESSAGE = 256;

/** A message is `look`, `next <holder>`, or `<holder> <milliseconds>`. */
function wakeUpOf(message: string): WakeUp {
  if (message.length > LONGEST_MESSAGE) return 'look';
  const [first = '', second] = message.split(' ');
  if (second === undefined) return 'look';
  return first === 'next' ? { next: second } : { turn: first, expiresIn: Number(second) };
}
