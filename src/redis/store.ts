import { OVERDUE, within } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { Answer, Claim, Extension, LeaseStore, Watch } from '../lease/store.js';
import type { RedisClient } from './client.js';
import { presentable } from './errors.js';
import { namesOf } from './keys.js';
import { isUnknownScript, run, type Script } from './script.js';
import * as scripts from './scripts.generated.js';
import { Subscriber } from './subscriber.js';

export interface RedisStoreOptions {
  readonly keyPrefix: string;
  /** How long one command may take before its answer counts as lost; milliseconds. */
  readonly commandTimeout: number;
}

/** Leases on one Redis (or a Sentinel group, which looks like one). */
export class RedisStore implements LeaseStore {
  readonly #redis: RedisClient;
  readonly #options: RedisStoreOptions;
  readonly #subscriber: Subscriber;

  constructor(redis: RedisClient, options: RedisStoreOptions, emit: Emit) {
    this.#redis = redis;
    this.#options = options;
    this.#subscriber = new Subscriber(redis, emit);
  }

  async acquire({ key, holder, leaseTime }: Claim, atMost?: number): Promise<Answer> {
    const { lease } = this.#names(key);
    const left = await this.#run(scripts.acquire, [lease], [holder, String(leaseTime)], atMost);
    if (left === 0) return { taken: true };
    return { taken: false, expiresIn: left === -1 ? Number.POSITIVE_INFINITY : left };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    try {
      const pipeline = this.#redis.pipeline();
      for (const { key, holder, leaseTime } of claims) {
        const { sha1, keys } = scripts.extend;
        pipeline.evalsha(sha1, keys, this.#names(key).lease, holder, String(leaseTime));
      }
      const replies = await this.#bounded(pipeline.exec());
      return await Promise.all(claims.map((claim, index) => this.#extension(claim, replies?.[index])));
    } catch (error) {
      return claims.map(() => presentable(error));
    }
  }

  async release({ key, holder }: Claim): Promise<void> {
    const { lease, channel } = this.#names(key);
    await this.#run(scripts.release, [lease], [holder, channel]);
  }

  async watch(key: string, wake: () => void, atMost?: number): Promise<Watch> {
    return { close: await this.#subscriber.listen(this.#names(key).channel, wake, atMost) };
  }

  async close(): Promise<void> {
    this.#subscriber.close();
  }

  #names(key: string) {
    return namesOf(this.#options.keyPrefix, key);
  }

  async #extension({ key, holder, leaseTime }: Claim, reply: [Error | null, unknown] | undefined): Promise<Extension> {
    if (reply === undefined) return new Error('Redis answered fewer commands than it was sent');
    const [error, extended] = reply;
    if (error === null) return Number(extended) === 1 ? 'extended' : 'gone';
    if (!isUnknownScript(error)) return presentable(error);
    try {
      const { lease } = this.#names(key);
      const again = await this.#run(scripts.extend, [lease], [holder, String(leaseTime)]);
      return again === 1 ? 'extended' : 'gone';
    } catch (failure) {
      return presentable(failure);
    }
  }

  /** A number also where the client's `stringNumbers` made a text of it: all our scripts answer with one. */
  async #run<Keys extends string[], Args extends string[]>(
    script: Script<Keys, Args, number>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost = this.#options.commandTimeout,
  ): Promise<number> {
    let wanted = true;
    try {
      return Number(
        await this.#bounded(
          run(this.#redis, script, keys, args, () => wanted),
          atMost,
        ),
      );
    } finally {
      wanted = false;
    }
  }

  /** ioredis' own `commandTimeout` is off by default, and a connection can stay 'ready' through a one-way silence. */
  #bounded<T>(reply: Promise<T>, atMost = this.#options.commandTimeout): Promise<T> {
    const time = Math.min(atMost, this.#options.commandTimeout);
    return within(reply, time).then(
      (answer) => {
        if (answer !== OVERDUE) return answer;
        // While it connects ioredis keeps commands back: its status says why nothing came.
        const { status } = this.#redis;
        throw new Error(`Redis did not answer within ${Math.round(time)} ms; the client's status is "${status}"`);
      },
      (error: unknown) => {
        throw presentable(error);
      },
    );
  }
}
