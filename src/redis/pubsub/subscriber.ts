import { after, OVERDUE, type Timer, within } from '../../base/clock.js';
import type { Emit, FencedLockEvent } from '../../base/events.js';
import type { WakeUp, Watch } from '../../lease/store.js';
import { isRedirection, presentable } from '../errors.js';
import type { Nodes } from '../topology/nodes.js';
import { type Manner, type PubSub, SubscriberConnection } from './subscriber-connection.js';

/** How long a server may take to confirm a subscription. */
const ANSWER_TIME = 2_000;
/** How often to try again to subscribe to what is not heard. */
const REPAIR_EVERY = 250;

type WakeListener = (wakeUp: WakeUp) => void;

interface Channel {
  readonly listeners: Set<WakeListener>;
  /** Settles with the first confirmation, or refusal, of a server. */
  readonly confirmed: Promise<void>;
  confirm(): void;
  refuse(error: unknown): void;
  /** Where it is subscribed to, or to be. */
  at: SubscriberConnection | undefined;
  /** Of the subscription that is under way; one that comes late is nobody's any more. */
  asked: object | undefined;
  /** Whether a message that is published now would be heard. */
  heard: boolean;
  /** Whether it ever was. */
  known: boolean;
}

const UNHEARD = { at: undefined, asked: undefined, heard: false, known: false };

/**
 * The channels that a client listens to, with their listeners counted, each on a connection to the server that has its
 * name: there is one connection for each such server, opened at the first use.
 *
 * A channel that is not heard (its connection broke, its name is another server's now) is subscribed to again, where it
 * belongs then. Its listeners are called when it is lost, and once it is heard again: what was published in between is gone.
 */
export class Subscriber {
  readonly #nodes: Nodes;
  readonly #manner: Manner;
  /** What ends the name of the channel that only this process subscribes to: that it does tells that it is there. */
  readonly #own: string;
  readonly #emit: Emit;
  readonly #channels = new Map<string, Channel>();
  readonly #connections = new Map<string, SubscriberConnection>();
  /** Where servers are that have been told of as not heard: each retry, and each new waiter, would tell it again. */
  readonly #unheard = new Set<string>();
  #repairing: Timer | undefined;
  #stopListening: (() => void) | undefined;

  constructor(nodes: Nodes, pubsub: PubSub, receiver: string, emit: Emit) {
    this.#nodes = nodes;
    this.#manner = { pubsub, pingEvery: nodes.pingEvery };
    this.#own = `:${receiver}`;
    this.#emit = emit;
  }

  /** Resolves once the server has confirmed the subscription. */
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
      const address = this.#nodes.addressOf(name);
      if (address !== undefined && this.#channels.has(name)) this.#tell(address, { type: 'subscriber-down', error });
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
    for (const channel of this.#channels.values()) channel.refuse(new Error('The client was closed'));
    this.#channels.clear();
    for (const connection of [...this.#connections.values()]) connection.close();
    this.#rest();
  }

  #add(name: string): Channel {
    let confirm = () => {};
    let refuse = (_: unknown) => {};
    const confirmed = new Promise<void>((resolve, reject) => {
      confirm = resolve;
      refuse = reject;
    });
    confirmed.catch(() => {});
    const channel: Channel = { listeners: new Set<WakeListener>(), confirmed, confirm, refuse, ...UNHEARD };
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
    if (this.#channels.size === 0) this.#rest();
  }

  /** Nobody listens to anything. */
  #rest(): void {
    this.#repairing?.stop();
    this.#repairing = undefined;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #placeAll(): void {
    for (const [name, channel] of this.#channels) this.#place(name, channel);
  }

  /** Sees to it that the channel is heard: there where its name is now. */
  #place(name: string, channel: Channel): void {
    const connection = this.#connectionFor(name);
    if (channel.at !== connection) {
      this.#leave(name, channel);
      channel.at = connection;
      connection?.use(name);
    }
    if (channel.heard) return;
    this.#repairSoon();
    if (connection?.up && channel.asked === undefined) void this.#ask(name, channel, connection);
  }

  async #ask(name: string, channel: Channel, connection: SubscriberConnection): Promise<void> {
    const asked = {};
    channel.asked = asked;
    try {
      await connection.subscribe(name, name + this.#own);
    } catch (error) {
      if (channel.asked !== asked) return;
      channel.asked = undefined;
      // Of a slot that moves, or of a connection that broke, more will be heard. Anything else is a refusal.
      if (!isRedirection(error) && connection.up) channel.refuse(error);
      return;
    }
    if (channel.asked !== asked) return;
    channel.asked = undefined;
    channel.heard = true;
    for (const address of this.#unheard) {
      if (this.#connections.get(address) === connection) this.#unheard.delete(address);
    }
    channel.confirm();
    if (channel.known) this.#wake(name);
    channel.known = true;
  }

  #leave(name: string, channel: Channel): void {
    const connection = channel.at;
    this.#lose(channel);
    channel.at = undefined;
    connection?.leave(name, name, name + this.#own);
  }

  #lose(channel: Channel): void {
    channel.heard = false;
    channel.asked = undefined;
  }

  /** While something is not heard, nobody else may find out where it is. */
  #repairSoon(): void {
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
      this.#manner,
      (event) => this.#tell(address, event),
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

  #tell(address: string, event: FencedLockEvent): void {
    if (this.#unheard.has(address)) return;
    this.#unheard.add(address);
    this.#emit(event);
  }

  /** Whoever waits finds out now whether the server can be reached, and not at the end of a lease. */
  #lost(connection: SubscriberConnection): void {
    const lost = [...this.#channels].filter(([, { at }]) => at === connection);
    for (const [, channel] of lost) this.#lose(channel);
    if (lost.length === 0) return;
    this.#nodes.refreshTopology();
    this.#repairSoon();
    for (const [name, { known }] of lost) if (known) this.#wake(name);
  }

  #wake(name: string, message = 'look'): void {
    const [turn = '', expiresIn] = message.split(' ');
    const wakeUp = wakeUpOf(turn, expiresIn);
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener(wakeUp);
  }
}

/** A message is `look`, `next` and a holder, or whose turn it is and for how long. */
function wakeUpOf(first: string, second: string | undefined): WakeUp {
  if (second === undefined) return 'look';
  return first === 'next' ? { next: second } : { turn: first, expiresIn: Number(second) };
}
