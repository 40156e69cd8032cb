import type { ClusterClient, RedisClient, RedisSubscriberClient } from '../client.js';
import { listen } from '../listen.js';
import type { PubSub } from '../pubsub/subscriber-connection.js';
import { Failure } from './failure.js';
import { Refusal } from './refusal.js';
import { Revival } from './revival.js';
import { slotOf } from './slot.js';

/** The servers behind a client, and which of them has which names. */
export interface Nodes {
  /** The verbs of wake-ups here. */
  readonly pubsub: PubSub;
  /** How often a connection on which somebody listens is asked whether it is still there; milliseconds. */
  readonly pingEvery: number;
  /** Whether the client may send a command once more that has failed, behind commands that came after it. */
  readonly resends: boolean;
  /** Whether the server's machine has just refused a connection to it. */
  readonly refused: boolean;
  /** Why the client is not connected, as far as it has said so. */
  readonly failure: Error | undefined;
  /** What may be behind it that a server does not answer, beside the state of its client; a text, or an empty one. */
  readonly suspicion: string;
  /** Before a channel, so that it is where the keys are: what the client puts before those by itself. */
  readonly channelPrefix: string;
  /** Where the server of a name is; `undefined` while nobody knows. */
  addressOf(name: string): string | undefined;
  /** Names of one group may be in one pipeline. */
  groupOf(name: string): string;
  /** One more connection to the server there; `undefined` if there is none any more. */
  open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined;
  /** Those that together have all names. */
  masters(): Promise<readonly Pick<RedisClient, 'scan'>[]>;
  /** What is known may not be true any more. */
  refreshTopology(): void;
  /** Calls the listener when names may have another address; the function that it gives ends that. */
  onChange(listener: () => void): () => void;
  /** Calls the listener when a server is back that was away, or another one is in its place. */
  onReturn(listener: () => void): () => void;
  /** Leaves nothing with the client. */
  close(): void;
}

export function nodesOf(redis: RedisClient | ClusterClient): Nodes {
  return 'isCluster' in redis && redis.isCluster ? new ClusterNodes(redis) : new OneNode(redis as RedisClient);
}

class OneNode implements Nodes {
  readonly pubsub = 'classic';
  readonly pingEvery = 5_000;
  readonly resends = false;
  readonly channelPrefix = '';
  readonly #redis: RedisClient;
  /** Behind Sentinel a server that is dead is replaced by another one, which has what it had. */
  readonly #refusal: Refusal | undefined;
  readonly #revival: Revival | undefined;
  readonly #failure: Failure;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#failure = new Failure(redis);
    if (redis.options?.sentinels) this.#revival = new Revival(redis);
    else this.#refusal = new Refusal(redis);
  }

  get refused(): boolean {
    return this.#refusal?.stands === true;
  }

  get failure(): Error | undefined {
    return this.#failure.last;
  }

  get suspicion(): string {
    const { status, options } = this.#redis;
    if (this.failure) return `: ${this.failure.message}`;
    if (!options?.sentinels || options.failoverDetector || status !== 'ready') return '';
    return ' (a master that froze and was replaced is left only with failoverDetector: true, an option of the client)';
  }

  addressOf(): string {
    return '';
  }

  groupOf(): string {
    return '';
  }

  open(_address: string, override: Record<string, unknown>): RedisSubscriberClient {
    return this.#redis.duplicate(override);
  }

  async masters(): Promise<readonly RedisClient[]> {
    return [this.#redis];
  }

  refreshTopology(): void {
    this.#revival?.revive();
  }

  onChange(): () => void {
    return () => {};
  }

  onReturn(listener: () => void): () => void {
    return listen(this.#redis, 'ready', listener);
  }

  close(): void {
    this.#refusal?.close();
    this.#revival?.close();
    this.#failure.close();
  }
}

class ClusterNodes implements Nodes {
  readonly pubsub = 'sharded';
  /** A node that froze is replaced within seconds, and nothing tells its subscribers. */
  readonly pingEvery = 1_000;
  readonly resends = true;
  readonly refused = false;
  readonly channelPrefix: string;
  readonly #redis: ClusterClient;
  readonly #failure: Failure;

  constructor(redis: ClusterClient) {
    this.#redis = redis;
    this.channelPrefix = redis.options?.keyPrefix ?? '';
    this.#failure = new Failure(redis);
  }

  get failure(): Error | undefined {
    return this.#failure.last;
  }

  get suspicion(): string {
    return this.failure ? `: ${this.failure.message}` : '';
  }

  addressOf(name: string): string | undefined {
    return this.#redis.slots[slotOf(name)]?.[0];
  }

  groupOf(name: string): string {
    return this.#redis.slots[slotOf(name)]?.join() ?? '';
  }

  open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined {
    const node = this.#redis.nodes('all').find(({ options }) => `${options.host}:${options.port}` === address);
    return node?.duplicate({ ...override, readOnly: false });
  }

  async masters(): Promise<readonly RedisClient[]> {
    // A client that is not connected yet knows only the nodes that it was given.
    if (this.#redis.status !== 'ready') await this.#redis.ping();
    return this.#redis.nodes('master');
  }

  refreshTopology(): void {
    const redis = this.#redis;
    // In any other state it is connecting, which ends in the same, or has ended.
    if (redis.status === 'ready') redis.refreshSlotsCache();
    else if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  onChange(listener: () => void): () => void {
    return listen(this.#redis, 'refresh', listener);
  }

  onReturn(listener: () => void): () => void {
    let before = this.#allMasters();
    return this.onChange(() => {
      const now = this.#allMasters();
      if (now !== before) listener();
      before = now;
    });
  }

  close(): void {
    this.#failure.close();
  }

  #allMasters(): string {
    return [...new Set(this.#redis.slots.map((nodes) => nodes?.[0]))].join();
  }
}
