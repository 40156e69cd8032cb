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
  MOST_WAITERS,
  type Reach,
  type WakeUp,
  type Watch,
} from '../waiting/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { CommandSender } from './commands.js';
import { isRedirection, isReply, presentable } from './errors.js';
import { escaped, keyOf, type Names, namesOf } from './names.js';
import { isUnknownScript, type Script } from './script.js';
import * as scripts from './scripts.generated.js';
import { Subscriber } from './subscriber/subscriber.js';
import type { PubSub } from './subscriber/subscriber-connection.js';
import { type Nodes, nodesOf } from './topology/nodes.js';

export interface RedisStoreOptions {
  readonly keyPrefix: string;
  /** What others are told of this process while it has a key or waits for one. Default: nothing. */
  readonly name?: string;
  /** How long a command may take before its answer counts as lost; milliseconds. */
  readonly commandTimeout: number;
  /** Whether wake-ups are published and subscribed to. Default: `true`. */
  readonly wakeUps?: boolean;
  /**
   * How long an offered key is kept for the process that is next; milliseconds. 0: there is no queue, and the first
   * process that looks gets the key. Default: 1 000.
   */
  readonly offerTime?: number;
  /**
   * The commands for wake-ups. All clients of the same locks must use the same. Default: `sharded` on a Cluster, else
   * `classic`.
   */
  readonly pubsub?: PubSub;
}

const OFFER_TIME = 1_000;
/** A subscription that never fires. */
const NO_WAKE_UPS: Watch = { close: () => {}, hears: false };
/** COUNT of each SCAN in `list`. */
const SCAN_STEP = '1000';

/** The parts that hold listeners and connections, from creation to `close`. */
interface OpenParts {
  readonly nodes: Nodes;
  readonly pubsub: PubSub;
  readonly sender: CommandSender;
  readonly subscriber: Subscriber;
}

/** Leases and queues on one Redis server, a Sentinel group, or a Cluster. */
export class RedisStore implements LeaseStore {
  readonly #redis: RedisClient | ClusterClient;
  readonly #options: RedisStoreOptions;
  readonly #emit: Emit;
  /** As the scripts get them. */
  readonly #name: string;
  readonly #offerTime: string;
  /** The id by which releases find out whether this waiting process is alive. */
  readonly #receiver = randomUUID();
  /**
   * What the client still awaits of looks that were given up, by holder. On a Cluster whose master is silent, they are sent
   * to the promoted replica behind commands that were issued later, and would take the key for nobody. So the holder's
   * release is sent again behind them.
   */
  readonly #late = new Map<string, Promise<unknown>>();
  #open: OpenParts | undefined;

  constructor(redis: RedisClient | ClusterClient, options: RedisStoreOptions, emit: Emit) {
    this.#redis = redis;
    this.#options = options;
    this.#emit = emit;
    this.#name = options.name ?? '';
    this.#offerTime = String(options.offerTime ?? OFFER_TIME);
    // Listen from now on, so that the first look knows what the client has reported.
    this.#open = this.#openParts();
  }

  /** After `close`, the next use opens it again. */
  get #opened(): OpenParts {
    this.#open ??= this.#openParts();
    return this.#open;
  }

  #openParts(): OpenParts {
    const nodes = nodesOf(this.#redis);
    const pubsub = this.#options.pubsub ?? nodes.pubsub;
    const sender = new CommandSender(this.#redis, nodes, this.#options.commandTimeout);
    return { nodes, pubsub, sender, subscriber: new Subscriber(nodes, pubsub, this.#receiver, this.#emit) };
  }

  get #nodes(): Nodes {
    return this.#opened.nodes;
  }

  get #pubsub(): PubSub {
    return this.#opened.pubsub;
  }

  get #sender(): CommandSender {
    return this.#opened.sender;
  }

  get reach(): Reach {
    return this.#sender.reach;
  }

  async acquire({ key, holder, leaseTime }: Claim, { enter = 0, atMost }: Look = {}): Promise<AcquireResult> {
    // Keep these references: the connection may come after `close`, and must not open the store again.
    const { sender, pubsub } = this.#opened;
    const { lease, queue, wake } = this.#names(key);
    const { connection } = sender;
    const time = connection ? await sender.connected(connection, atMost) : atMost;
    const args = [holder, String(leaseTime), this.#receiver, String(Math.ceil(enter)), wake] as const;
    const [reply, present, process] = await sender.runScript(
      scripts.acquire,
      [lease, queue],
      [...args, this.#offerTime, pubsub, this.#name],
      time,
      (answer) => this.#onLate(holder, answer),
    );
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
    // All nodes are asked at the same time. The time limit is short, so that a silent node does not cost the leases on
    // other nodes their time.
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
    if (!kept && this.#late.has(claim.holder)) this.release(claim).catch(() => {});
    return kept;
  }

  async release({ key, holder }: Claim, quietly = false): Promise<void> {
    // Keep these references: a late answer may come after `close`, and must not open the store again.
    const { sender, pubsub } = this.#opened;
    const { lease, queue, wake } = this.#names(key);
    const args = [holder, this.#receiver, quietly ? '' : wake, this.#offerTime, pubsub, this.#name] as const;
    const send = () => sender.runScript(scripts.release, [lease, queue], [...args]);
    this.#late
      .get(holder)
      ?.then(send)
      .catch(() => {});
    this.#late.delete(holder);
    await send();
  }

  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    if (this.#options.wakeUps === false) return NO_WAKE_UPS;
    return await this.#opened.subscriber.listen(this.#names(key).wake, wake);
  }

  /** Only with wake-ups: a lease of which a hint was sent is kept from the callers of this process. */
  get hint(): LeaseStore['hint'] {
    return this.#options.wakeUps === false ? undefined : this.#hint;
  }

  readonly #hint = async ({ key, holder }: Claim): Promise<void> => {
    const { lease, queue, wake } = this.#names(key);
    await this.#sender.runScript(scripts.hint, [lease, queue], [holder, wake, this.#pubsub]);
  };

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const { sender } = this.#opened;
    const { lease } = this.#names(key);
    const { connection } = sender;
    if (connection) await sender.connected(connection);
    return (await this.#number(scripts.transfer, [lease], [holder, successor, String(leaseTime), this.#name])) === 1;
  }

  async inspect(key: string, names = 0): Promise<KeyState> {
    const { lease, queue } = this.#names(key);
    const [holder, expiresIn, waiting, alien, process, waiters] = await this.#sender.runScript(
      scripts.inspect,
      [lease, queue],
      [String(names)],
    );
    const name = [undefined, lease, queue][Number(alien)];
    return {
      key,
      holder: holder === '' ? undefined : String(holder),
      expiresIn: Math.max(0, Number(expiresIn)),
      waiting: Number(waiting),
      ...waitersOf(waiters as readonly unknown[]),
      ...named(process),
      ...(name !== undefined && {
        problem: `In Redis ${JSON.stringify(name)} has a value that this package did not write`,
      }),
    };
  }

  async list(): Promise<readonly KeyState[]> {
    const { keyPrefix } = this.#options;
    // Names have the client's own `keyPrefix` in front.
    const own = this.#redis.options?.keyPrefix ?? '';
    const seen = new Set<string>();
    const states: KeyState[] = [];
    for (const master of await this.#sender.bounded(this.#nodes.masters())) {
      let cursor = '0';
      do {
        const scan = master.scan(cursor, 'MATCH', `${escaped(own + keyPrefix)}{*`, 'COUNT', SCAN_STEP);
        const [next, names] = await this.#sender.bounded(scan);
        const found = new Set(names.map((name) => keyOf(keyPrefix, name.slice(own.length))));
        const fresh = [...found].filter((key) => key !== undefined && !seen.has(key)) as string[];
        for (const key of fresh) seen.add(key);
        // Page by page: with all keys in flight at once, the last answers would exceed the time limit.
        states.push(...(await Promise.all(fresh.map((key) => this.inspect(key, MOST_WAITERS)))));
        cursor = String(next);
      } while (cursor !== '0');
    }
    return states.filter(isInUse);
  }

  async force(key: string, holder: string): Promise<boolean> {
    const { lease, queue, wake } = this.#names(key);
    return (await this.#number(scripts.force, [lease, queue], [holder, wake, this.#offerTime, this.#pubsub])) === 1;
  }

  serverOf(key: string): string {
    return this.#nodes.groupOf(this.#names(key).wake);
  }

  onReturn(listener: () => void): () => void {
    return this.#nodes.onReturn(listener);
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    open?.sender.close();
    open?.subscriber.close();
    open?.nodes.close();
  }

  #onLate(holder: string, answer: Promise<unknown>): void {
    const late = Promise.allSettled([this.#late.get(holder), answer]).then(() => {
      if (this.#late.get(holder) === late) this.#late.delete(holder);
    });
    this.#late.set(holder, late);
  }

  /** Without wake-ups, the channel is empty, and the scripts publish nothing. */
  #names(key: string): Names {
    const names = namesOf(this.#options.keyPrefix, key);
    return { ...names, wake: this.#options.wakeUps === false ? '' : this.#nodes.channelPrefix + names.wake };
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

  /** Extends the leases in one pipeline. */
  async #extendTogether(claims: readonly Claim[], atMost?: number): Promise<Extension[]> {
    try {
      const pipeline = this.#redis.pipeline();
      const { sha1, keys } = scripts.extend;
      for (const claim of claims) pipeline.evalsha(sha1, keys, ...this.#extendKeys(claim), ...this.#extendArgs(claim));
      const replies = await this.#sender.bounded(pipeline.exec(), atMost);
      return await Promise.all(claims.map((claim, index) => this.#extension(claim, replies?.[index])));
    } catch (error) {
      return claims.map(() => presentable(error));
    }
  }

  async #extension(claim: Claim, reply: [Error | null, unknown] | undefined): Promise<Extension> {
    if (reply === undefined) return new Error('Redis answered fewer commands than it was sent');
    const [error, extended] = reply;
    if (error === null) return Number(extended) === 1 ? 'extended' : 'gone';
    // A pipeline goes to one node. If a key has moved from there, extend it by a single command.
    if (!isReply(error)) this.#open?.nodes.refreshTopology();
    if (!isUnknownScript(error) && !isRedirection(error)) return presentable(error);
    try {
      const again = await this.#number(scripts.extend, this.#extendKeys(claim), this.#extendArgs(claim));
      return again === 1 ? 'extended' : 'gone';
    } catch (failure) {
      return presentable(failure);
    }
  }

  /** Converts the reply: with the client option `stringNumbers`, numbers arrive as strings. */
  async #number<Keys extends string[], Args extends string[]>(
    script: Script<Keys, Args, number>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
  ): Promise<number> {
    return Number(await this.#sender.runScript(script, keys, args));
  }
}

/** What an answer says of the name of a process; an offer, and a lease of an older version, has none. */
function named(process: unknown): { readonly process?: string } {
  return process === undefined || process === '' ? {} : { process: String(process) };
}

/** What an answer says of the names of the processes that wait; an entry of an older version has none. */
function waitersOf(names: readonly unknown[]): { readonly waiters?: readonly (string | undefined)[] } {
  if (names.length === 0) return {};
  return { waiters: names.map((name) => (name === '' ? undefined : String(name))) };
}
