import { randomUUID } from 'node:crypto';
import { asError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { type PermitName, permitName } from '../base/permits.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isInUse,
  type KeyState,
  type LeaseStore,
  type Look,
  MOST_WAITERS,
  type WakeUp,
  type Watch,
} from '../waiting/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { Commands } from './commands.js';
import { escaped, keyOf, type Names, namesOf } from './names.js';
import type { Script } from './script.js';
import * as scripts from './scripts.generated.js';
import { Subscriber } from './subscriber/subscriber.js';
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
}

const OFFER_TIME = 1_000;
/** A subscription that never fires. */
const NO_WAKE_UPS: Watch = { close: () => {}, hears: false };
/** COUNT of each SCAN in `list`. */
const SCAN_STEP = '1000';

/** The parts that hold listeners and connections, from creation to `close`. */
interface OpenParts {
  readonly nodes: Nodes;
  readonly sender: Commands;
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
    const sender = new Commands(this.#redis, nodes, this.#options.commandTimeout);
    return { nodes, sender, subscriber: new Subscriber(nodes, this.#receiver, this.#emit) };
  }

  async acquire({ key, holder, leaseTime }: Claim, { enter = 0, atMost }: Look = {}): Promise<AcquireResult> {
    const { sender, nodes } = this.#opened;
    const { lease, queue, wake, permit } = this.#names(key);
    const place = [holder, String(leaseTime), this.#receiver, String(Math.ceil(enter)), wake] as const;
    const args = [...place, this.#offerTime, nodes.pubsub, this.#name] as const;
    const overdue = (answer: Promise<unknown>) =>
      this.#late.set(holder, Promise.allSettled([this.#late.get(holder), answer]));
    const [reply, present, process] =
      permit === undefined
        ? await sender.runScript(scripts.acquire, [lease, queue], [...args], atMost, overdue)
        : await sender.runScript(scripts.permitAcquire, [lease, queue], [...args, ...rangeOf(permit)], atMost, overdue);
    const left = Number(reply);
    if (left === 0 && permit !== undefined) return { taken: true, key: permitName(permit.key, Number(present)) };
    if (left === 0) return { taken: true, contended: Number(present) > 0 };
    const expiresIn = left === -1 ? Number.POSITIVE_INFINITY : left;
    return { taken: false, expiresIn, holder: String(present), ...named(process) };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    // All at the same time. Where there are several servers the time limit is short, so that one that is silent does not
    // cost the leases on the others their time.
    const servers = new Set(claims.map(({ key }) => this.serverOf(key)));
    const atMost = servers.size > 1 ? Math.min(...claims.map(({ leaseTime }) => leaseTime)) / 6 : undefined;
    const extension = async (claim: Claim) => {
      try {
        return (await this.#extended(scripts.extend, claim, atMost)) ? 'extended' : 'gone';
      } catch (error) {
        return asError(error);
      }
    };
    return await Promise.all(claims.map(extension));
  }

  /** A permit is not yielded: no caller of this process waits behind the one that has it. */
  async yield(claim: Claim): Promise<boolean> {
    return await this.#extended(scripts.yield_, claim);
  }

  async release({ key, holder }: Claim, quietly = false): Promise<void> {
    // Keep these references: a late answer may come after `close`, and must not open the store again.
    const { sender, nodes } = this.#opened;
    const { lease, queue, wake, permit } = this.#names(key);
    const args = [quietly ? '' : wake, this.#offerTime, nodes.pubsub, this.#name] as const;
    const send = () => {
      if (permit === undefined) {
        return sender.runScript(scripts.release, [lease, queue], [holder, this.#receiver, ...args]);
      }
      const [first, last, most] = rangeOf(permit);
      const whose = [first, last, holder, this.#receiver, most] as const;
      return sender.runScript(scripts.permitRelease, [lease, queue], [...whose, ...args]);
    };
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
    await this.#opened.sender.runScript(scripts.hint, [lease, queue], [holder, wake, this.#opened.nodes.pubsub]);
  };

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const { lease, permit } = this.#names(key);
    if (permit !== undefined) return await this.#permitExtended({ key, holder, leaseTime }, successor);
    return await this.#says(scripts.transfer, [lease], [holder, successor, String(leaseTime), this.#name]);
  }

  async inspect(key: string, names = 0): Promise<KeyState> {
    const { lease, queue, permit } = this.#names(key);
    if (permit !== undefined) {
      const states = await this.#permits(permitName(permit.key, permit.permit ?? 0), names);
      return states.find((state) => state.key === key) ?? (states.at(-1) as KeyState);
    }
    const [holder, expiresIn, waiting, alien, process, waiters] = await this.#opened.sender.runScript(
      scripts.inspect,
      [lease, queue],
      [String(names)],
    );
    return {
      key,
      holder: holder === '' ? undefined : String(holder),
      expiresIn: Math.max(0, Number(expiresIn)),
      waiting: Number(waiting),
      ...waitersOf(waiters as readonly unknown[]),
      ...named(process),
      ...problemAt([undefined, lease, queue][Number(alien)]),
    };
  }

  /** The permits of a key that somebody has, and behind them the named one, as it is where nobody has it. */
  async #permits(key: string, names: number): Promise<readonly KeyState[]> {
    const { lease, queue, permit } = this.#names(key);
    const sent = this.#opened.sender.runScript(scripts.permitInspect, [lease, queue], [String(names)]);
    const [waiting, alien, waiters, ...taken] = await sent;
    const shared = {
      waiting: Number(waiting),
      ...waitersOf(waiters as readonly unknown[]),
      ...problemAt([undefined, lease, queue][Number(alien)]),
    };
    const states: KeyState[] = [];
    for (let at = 0; at < taken.length; at += 4) {
      const [number, holder, left, process] = taken.slice(at, at + 4);
      const name = permitName(permit?.key as string, Number(number));
      states.push({ ...shared, key: name, holder: String(holder), expiresIn: Number(left), ...named(process) });
    }
    states.sort((one, other) => one.key.length - other.key.length || (one.key < other.key ? -1 : 1));
    return [...states, { ...shared, key, holder: undefined, expiresIn: 0 }];
  }

  async list(): Promise<readonly KeyState[]> {
    const { keyPrefix } = this.#options;
    // Names have the client's own `keyPrefix` in front.
    const own = this.#redis.options?.keyPrefix ?? '';
    const seen = new Set<string>();
    const states: KeyState[] = [];
    for (const master of await this.#opened.sender.bounded(this.#opened.nodes.masters())) {
      let cursor = '0';
      do {
        const scan = master.scan(cursor, 'MATCH', `${escaped(own + keyPrefix)}{*`, 'COUNT', SCAN_STEP);
        const [next, names] = await this.#opened.sender.bounded(scan);
        const found = new Set(names.map((name) => keyOf(keyPrefix, name.slice(own.length))));
        const fresh = [...found].filter((key) => key !== undefined && !seen.has(key)) as string[];
        for (const key of fresh) seen.add(key);
        // Page by page: with all keys in flight at once, the last answers would exceed the time limit.
        states.push(...(await Promise.all(fresh.map((key) => this.#statesOf(key)))).flat());
        cursor = String(next);
      } while (cursor !== '0');
    }
    return states.filter(isInUse);
  }

  /** What `list` shows of a key: one state, or one for each permit that somebody has. Where nobody has any, one tells who waits. */
  async #statesOf(key: string): Promise<readonly KeyState[]> {
    if (this.#names(key).permit === undefined) return [await this.inspect(key, MOST_WAITERS)];
    const states = await this.#permits(key, MOST_WAITERS);
    return states.length > 1 ? states.slice(0, -1) : states;
  }

  async force(key: string, holder: string): Promise<boolean> {
    const { lease, queue, wake, permit } = this.#names(key);
    if (permit !== undefined) {
      const [first, last, most] = rangeOf(permit);
      const how = [wake, this.#offerTime, this.#opened.nodes.pubsub, ''] as const;
      return await this.#says(scripts.permitRelease, [lease, queue], [first, last, holder, '', most, ...how]);
    }
    return await this.#says(scripts.force, [lease, queue], [holder, wake, this.#offerTime, this.#opened.nodes.pubsub]);
  }

  serverOf(key: string): string {
    return this.#opened.nodes.addressOf(this.#names(key).wake) ?? '';
  }

  onReturn(listener: () => void): () => void {
    return this.#opened.nodes.onReturn(listener);
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    open?.subscriber.close();
    open?.nodes.close();
  }

  /** Without wake-ups, the channel is empty, and the scripts publish nothing. */
  #names(key: string): Names {
    const names = namesOf(this.#options.keyPrefix, key);
    return { ...names, wake: this.#options.wakeUps === false ? '' : this.#opened.nodes.channelPrefix + names.wake };
  }

  /** Whether the lease was extended. */
  #extended(
    script: typeof scripts.extend | typeof scripts.yield_,
    { key, holder, leaseTime }: Claim,
    atMost?: number,
  ): Promise<boolean> {
    const { lease, queue, wake, permit } = this.#names(key);
    if (permit !== undefined) return this.#permitExtended({ key, holder, leaseTime }, holder, atMost);
    const args = [holder, String(leaseTime), wake, this.#offerTime, this.#opened.nodes.pubsub, this.#name] as const;
    return this.#says(script, [lease, queue], [...args], atMost);
  }

  #permitExtended({ key, holder, leaseTime }: Claim, successor: string, atMost?: number): Promise<boolean> {
    const { lease, queue, wake, permit } = this.#names(key);
    const whose = [String(permit?.first), holder, successor, String(leaseTime)] as const;
    const how = [wake, this.#offerTime, this.#opened.nodes.pubsub, this.#name] as const;
    return this.#says(scripts.permitExtend, [lease, queue], [...whose, ...how], atMost);
  }

  /** Whether the script replies 1. With the client option `stringNumbers`, numbers arrive as strings. */
  async #says<Keys extends string[], Args extends string[]>(
    script: Script<Keys, Args, number>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost?: number,
  ): Promise<boolean> {
    return Number(await this.#opened.sender.runScript(script, keys, args, atMost)) === 1;
  }
}

/** Which permits a script may take, as it gets them. */
function rangeOf({ first, last, most }: PermitName): readonly [first: string, last: string, most: string] {
  return [String(first), String(last), String(most)];
}

function problemAt(name: string | undefined): { readonly problem?: string } {
  if (name === undefined) return {};
  return { problem: `In Redis ${JSON.stringify(name)} has a value that this package did not write` };
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
