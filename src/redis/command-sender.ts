import { after, now, OVERDUE, within } from '../base/clock.js';
import { isDenial, NotAsked, type Reach } from '../lease/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { RedisConnection } from './connection.js';
import { isReply, presentable } from './errors.js';
import { isUnknownScript, type Script } from './script.js';
import type { Nodes } from './topology/nodes.js';

/** The states of a client that is connected, or waits for its first command to be. */
const READY = ['ready', 'wait'];
/** The states of a client that has no connection, and has had one or failed to get one. */
const AWAY = ['close', 'reconnecting', 'end'];

/** Sends commands, and waits for their answers no longer than they may take. */
export class CommandSender {
  readonly #redis: RedisClient | ClusterClient;
  readonly #nodes: Nodes;
  readonly #longest: number;
  readonly #connection: RedisConnection;

  /** `longest`: how long any command may take; milliseconds. */
  constructor(redis: RedisClient | ClusterClient, nodes: Nodes, longest: number) {
    this.#redis = redis;
    this.#nodes = nodes;
    this.#longest = longest;
    this.#connection = new RedisConnection(redis);
  }

  get reach(): Reach {
    const { status } = this.#redis;
    // One that connects for the first time is not away: it may be there in a moment.
    const says = `the client's status is "${status}"${this.#nodes.suspicion}`;
    return { ready: READY.includes(status), away: AWAY.includes(status), refused: this.#nodes.refused, says };
  }

  /** While the client has no connection: resolves when it has one, or never will. */
  get connection(): Promise<void> | undefined {
    return this.#connection.awaited;
  }

  /**
   * How much of the time is left once there is a connection. A look that is given to the client before is sent when
   * nobody waits any more, and so is what undoes it: through a long outage they would pile up there. Nobody waits where the
   * server has just refused the login.
   */
  async connected(connection: Promise<void>, atMost = this.#longest): Promise<number> {
    const time = Math.min(atMost, this.#longest);
    const { failure } = this.#nodes;
    if (isDenial(failure)) throw new NotAsked(failure?.message, { cause: failure });
    const since = now();
    if ((await within(connection, time)) !== OVERDUE) return Math.max(0, time - (now() - since));
    this.#nodes.refreshTopology();
    throw new NotAsked(this.#silence(time));
  }

  /**
   * Runs a script by its hash; a server that has not seen it yet (or was restarted) is sent the text once, unless nobody waits
   * for the answer any more: by then it would come behind the command that undoes it.
   */
  runScript<Keys extends string[], Args extends string[], Reply>(
    { sha1, lua, keys: count }: Script<Keys, Args, Reply>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost = this.#longest,
  ): Promise<Reply> {
    // One promise, and not one for each step: this is on the way of each call.
    return new Promise((resolve, reject) => {
      const time = Math.min(atMost, this.#longest);
      let isWaiting = true;
      const timer = after(time, () => {
        isWaiting = false;
        this.#nodes.refreshTopology();
        reject(new Error(this.#silence(time)));
      });
      const answered = (reply: unknown): void => {
        timer.stop();
        resolve(reply as Reply);
      };
      const failed = (error: unknown): void => {
        timer.stop();
        if (isWaiting && !isReply(error)) this.#nodes.refreshTopology();
        reject(presentable(error));
      };
      this.#redis.evalsha(sha1, count, ...keys, ...args).then(answered, (error: unknown) => {
        if (isUnknownScript(error) && isWaiting) this.#redis.eval(lua, count, ...keys, ...args).then(answered, failed);
        else failed(error);
      });
    });
  }

  /** ioredis' own `commandTimeout` is off by default, and a connection can stay 'ready' through a one-way silence. */
  bounded<T>(reply: Promise<T>, atMost = this.#longest): Promise<T> {
    const time = Math.min(atMost, this.#longest);
    return within(reply, time).then(
      (answer) => {
        if (answer !== OVERDUE) return answer;
        this.#nodes.refreshTopology();
        throw new Error(this.#silence(time));
      },
      (error: unknown) => {
        if (!isReply(error)) this.#nodes.refreshTopology();
        throw presentable(error);
      },
    );
  }

  close(): void {
    this.#connection.close();
  }

  /** While it connects ioredis keeps commands back: its status says why nothing came. */
  #silence(time: number): string {
    return `Redis did not answer within ${Math.round(time)} ms; ${this.reach.says}`;
  }
}
