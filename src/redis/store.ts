import { randomUUID } from 'node:crypto';
import type { Emit } from '../base/events.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isInUse,
  type KeyState,
  type LeaseStore,
  type Look,
  type Reach,
  type WakeUp,
  type Watch,
} from '../lease/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { CommandSender } from './command-sender.js';
import { isRedirection, isReply, presentable } from './errors.js';
import { keyOf, type Names, namesOf } from './keys.js';
import { Subscriber } from './pubsub/subscriber.js';
import type { PubSub } from './pubsub/subscriber-connection.js';
import { isUnknownScript, type Script } from './script.js';
import * as scripts from './scripts.generated.js';
import { type Nodes, nodesOf } from './topology/nodes.js';
import { Unanswered } from './unanswered.js';

export interface RedisStoreOptions {
  readonly keyPrefix: string;
  /** What others are told of this process while it has a key. Default: nothing. */
  readonly name?: string;
  /** How long one command may take before its answer counts as lost; milliseconds. */
  readonly commandTimeout: number;
  /** Whether wake-ups are published and heard. Default: `true`. */
  readonly wakeUps?: boolean;
  /**
   * How long a key is kept for the one whose turn it is, until that one takes it; milliseconds. 0: there is no order, and
   * whoever comes first has it. Default: 1 000.
   */
  readonly offerTime?: number;
  /** The verbs of wake-ups. All clients of the same locks have to agree. Default: `sharded` on a Cluster only. */
  readonly pubsub?: PubSub;
}

const OFFER_TIME = 1_000;
/** What closes where nothing was opened. */
const DEAF: Watch = { close: () => {}, hears: false };
/** How many names a step of `list` asks for. */
const SCAN_STEP = '1000';

/** What listens on the client, and to its servers. */
interface OpenedStore {
  readonly nodes: Nodes;
  readonly pubsub: PubSub;
  readonly asking: CommandSender;
  readonly subscriber: Subscriber;
}

/** Leases and queues on one Redis (or a Sentinel group, which looks like one), or on a Cluster, key by key. */
export class RedisStore implements LeaseStore {
  readonly #redis: RedisClient | ClusterClient;
  readonly #options: RedisStoreOptions;
  readonly #emit: Emit;
  /** What this process is known by where it waits. */
  readonly #receiver = randomUUID();
  readonly #unanswered = new Unanswered();
  #open: OpenedStore | undefined;

  constructor(redis: RedisClient | ClusterClient, options: RedisStoreOptions, emit: Emit) {
    this.#redis = redis;
    this.#options = options;
    this.#emit = emit;
    // What the client says from now on is known at the first look.
    this.#open = this.#begin();
  }

  /** After `close` it begins anew. */
  get #opened(): OpenedStore {
    this.#open ??= this.#begin();
    return this.#open;
  }

  #begin(): OpenedStore {
    const nodes = nodesOf(this.#redis);
    const pubsub = this.#options.pubsub ?? nodes.pubsub;
    const asking = new CommandSender(this.#redis, nodes, this.#options.commandTimeout);
    return { nodes, pubsub, asking, subscriber: new Subscriber(nodes, pubsub, this.#receiver, this.#emit) };
  }

  get #nodes(): Nodes {
    return this.#opened.nodes;
  }

  get #pubsub(): PubSub {
    return this.#opened.pubsub;
  }

  get #asking(): CommandSender {
    return this.#opened.asking;
  }

  get reach(): Reach {
    return this.#asking.reach;
  }

  async acquire({ key, holder, leaseTime }: Claim, { enter = 0, atMost }: Look = {}): Promise<AcquireResult> {
    // Kept: the answer may come when all this is closed, and must not open it again.
    const { asking, nodes, pubsub } = this.#opened;
    const { lease, queue, wake } = this.#names(key);
    const { connection } = asking;
    const time = connection ? await asking.connected(connection, atMost) : atMost;
    const args = [holder, String(leaseTime), this.#receiver, String(Math.ceil(enter)), wake] as const;
    const [reply, present, process] = await asking
      .runScript(scripts.acquire, [lease, queue], [...args, this.#offerTime, pubsub, this.#name], time)
      .catch((error: unknown) => {
        if (nodes.resends && !isReply(error)) this.#unanswered.add(holder);
        throw error;
      });
    const left = Number(reply);
    if (left === 0) return { taken: true, contended: Number(present) > 0 };
    const expiresIn = left === -1 ? Number.POSITIVE_INFINITY : left;
    return { taken: false, expiresIn, holder: String(present), ...named(process) };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const groups = new Map<string, Array<[index: number, claim: Claim]>>();
    claims.forEach((claim, index) => {
      const name = this.#nodes.groupOf(this.#names(claim.key).wake);
      const group = groups.get(name) ?? [];
      group.push([index, claim]);
      groups.set(name, group);
    });
    const answers: Extension[] = [];
    // All are told together: a node that is silent must not cost those of the others their time.
    const atMost = groups.size > 1 ? Math.min(...claims.map(({ leaseTime }) => leaseTime)) / 6 : undefined;
    const extended = [...groups.values()].map(async (group) => {
      const extensions = await this.#extendTogether(
        group.map(([, claim]) => claim),
        atMost,
      );
      group.forEach(([index], at) => {
        answers[index] = extensions[at] ?? new Error('Redis answered fewer commands than it was sent');
      });
    });
    await Promise.all(extended);
    return answers;
  }

  async yield(claim: Claim): Promise<boolean> {
    const kept = (await this.#number(scripts.yield_, this.#extendKeys(claim), this.#extendArgs(claim))) === 1;
    if (!kept) this.#unanswered.over(claim.holder, () => this.#giveBack(claim));
    return kept;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    try {
      await this.#giveBack(claim, quietly);
    } finally {
      this.#unanswered.over(claim.holder, () => this.#giveBack(claim, quietly));
    }
  }

  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    if (this.#options.wakeUps === false) return DEAF;
    return await this.#opened.subscriber.listen(this.#names(key).wake, wake);
  }

  async hint({ key, holder }: Claim): Promise<void> {
    const { lease, queue, wake } = this.#names(key);
    if (wake !== '') await this.#asking.runScript(scripts.hint, [lease, queue], [holder, wake, this.#pubsub]);
  }

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const { lease, wake } = this.#names(key);
    const args = [holder, successor, String(leaseTime), wake, this.#pubsub, this.#name] as const;
    return (await this.#number(scripts.transfer, [lease], [...args])) === 1;
  }

  async inspect(key: string): Promise<KeyState> {
    const { lease, queue } = this.#names(key);
    const [holder, expiresIn, waiting, alien, process] = await this.#asking.runScript(
      scripts.inspect,
      [lease, queue],
      [],
    );
    const name = [undefined, lease, queue][Number(alien)];
    return {
      key,
      holder: holder === '' ? undefined : String(holder),
      expiresIn: Math.max(0, Number(expiresIn)),
      waiting: Number(waiting),
      ...named(process),
      ...(name !== undefined && {
        problem: `In Redis ${JSON.stringify(name)} has a value of another type, which nobody here wrote`,
      }),
    };
  }

  async list(): Promise<readonly KeyState[]> {
    const { keyPrefix } = this.#options;
    // A name that ioredis is to put a prefix of its own before is found behind that prefix.
    const own = this.#redis.options?.keyPrefix ?? '';
    const seen = new Set<string>();
    const states: KeyState[] = [];
    for (const master of await this.#asking.bounded(this.#nodes.masters())) {
      let cursor = '0';
      do {
        const scan = master.scan(cursor, 'MATCH', `${escaped(own + keyPrefix)}{*`, 'COUNT', SCAN_STEP);
        const [next, names] = await this.#asking.bounded(scan);
        const found = new Set(names.map((name) => keyOf(keyPrefix, name.slice(own.length))));
        const fresh = [...found].filter((key) => key !== undefined && !seen.has(key)) as string[];
        for (const key of fresh) seen.add(key);
        // Step by step: with all of them under way at once the last answers would come too late.
        states.push(...(await Promise.all(fresh.map((key) => this.inspect(key)))));
        cursor = String(next);
      } while (cursor !== '0');
    }
    return states.filter(isInUse);
  }

  async force(key: string, holder: string): Promise<boolean> {
    const { lease, queue, wake } = this.#names(key);
    return (await this.#number(scripts.force, [lease, queue], [holder, wake, this.#offerTime, this.#pubsub])) === 1;
  }

  onReturn(listener: () => void): () => void {
    return this.#nodes.onReturn(listener);
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    open?.asking.close();
    open?.subscriber.close();
    open?.nodes.close();
  }

  async #giveBack({ key, holder }: Claim, quietly = false): Promise<void> {
    const { lease, queue, wake } = this.#names(key);
    const args = [holder, this.#receiver, quietly ? '' : wake, this.#offerTime, this.#pubsub] as const;
    await this.#asking.runScript(scripts.release, [lease, queue], [...args]);
  }

  /** No channel: the scripts publish nothing. */
  #names(key: string): Names {
    const names = namesOf(this.#options.keyPrefix, key);
    return { ...names, wake: this.#options.wakeUps === false ? '' : this.#nodes.channelPrefix + names.wake };
  }

  get #name(): string {
    return this.#options.name ?? '';
  }

  get #offerTime(): string {
    return String(this.#options.offerTime ?? OFFER_TIME);
  }

  #extendKeys({ key }: Claim): [lease: string, queue: string] {
    const { lease, queue } = this.#names(key);
    return [lease, queue];
  }

  #extendArgs({
    key,
    holder,
    leaseTime,
  }: Claim): [holder: string, leaseTime: string, wake: string, offerTime: string, pubsub: string, name: string] {
    return [holder, String(leaseTime), this.#names(key).wake, this.#offerTime, this.#pubsub, this.#name];
  }

  /** In one pipeline. */
  async #extendTogether(claims: readonly Claim[], atMost?: number): Promise<Extension[]> {
    try {
      const pipeline = this.#redis.pipeline();
      for (const claim of claims) {
        const { sha1, keys } = scripts.extend;
        pipeline.evalsha(sha1, keys, ...this.#extendKeys(claim), ...this.#extendArgs(claim));
      }
      const replies = await this.#asking.bounded(pipeline.exec(), atMost);
      return await Promise.all(claims.map((claim, index) => this.#extension(claim, replies?.[index])));
    } catch (error) {
      return claims.map(() => presentable(error));
    }
  }

  async #extension(claim: Claim, reply: [Error | null, unknown] | undefined): Promise<Extension> {
    if (reply === undefined) return new Error('Redis answered fewer commands than it was sent');
    const [error, extended] = reply;
    if (error === null) return Number(extended) === 1 ? 'extended' : 'gone';
    // A pipeline of several keys goes to one node; where one of them has moved, it is asked for by itself.
    if (!isReply(error)) this.#open?.nodes.refreshTopology();
    if (!isUnknownScript(error) && !isRedirection(error)) return presentable(error);
    try {
      const again = await this.#number(scripts.extend, this.#extendKeys(claim), this.#extendArgs(claim));
      return again === 1 ? 'extended' : 'gone';
    } catch (failure) {
      return presentable(failure);
    }
  }

  /** A number also where the client's `stringNumbers` made a text of it. */
  async #number<Keys extends string[], Args extends string[]>(
    script: Script<Keys, Args, number>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost?: number,
  ): Promise<number> {
    return Number(await this.#asking.runScript(script, keys, args, atMost));
  }
}

/** What an answer says of the name of a process; an offer, and a lease of an older version, has none. */
function named(process: unknown): { readonly process?: string } {
  return process === undefined || process === '' ? {} : { process: String(process) };
}

/** A text as a pattern that matches only itself. */
function escaped(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&');
}
