import { AnswerTimer, now, OVERDUE, turnOfLoop, within } from '../base/clock.js';
import { Denied, isDenial, NotAsked, type Reach } from '../waiting/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { isReply, presentable, WHICH_URL } from './errors.js';
import { sentAgain } from './ioredis-bugs.js';
import { isUnknownScript, type Script } from './script.js';
import { listen } from './shared-listeners.js';
import type { Nodes } from './topology/nodes.js';

/** Statuses of a client that makes its connection, or would make it for a command. */
const CONNECTING = ['wait', 'connecting', 'connect'];
/** Statuses of a client that is going to connect. */
const UNCONNECTED = ['connecting', 'close', 'reconnecting'];
/** Statuses in which a client without a queue of its own refuses commands, and is not ended. */
const REFUSING = ['wait', 'connect', ...UNCONNECTED];

/** Time limit of a command that had to wait for the connection, however little time is left; milliseconds. */
const LEAST_TIME = 250;

/** Sends commands and bounds the wait for their answers. */
export class Commands {
  readonly #redis: RedisClient | ClusterClient;
  readonly #nodes: Nodes;
  readonly #longest: number;
  /**
   * The scripts that were answered since one was lacking; `undefined` if none has been. A server that lacks one was started,
   * flushed or promoted, and may lack all: each is sent with its text first, so that it is not executed behind later commands.
   * Otherwise who gives a key back on a fresh server and tries it at once would be told that somebody has it.
   */
  #known: Set<string> | undefined;

  /** @param longest time limit of any command; milliseconds. */
  constructor(redis: RedisClient | ClusterClient, nodes: Nodes, longest: number) {
    this.#redis = redis;
    this.#nodes = nodes;
    this.#longest = longest;
  }

  get reach(): Reach {
    const { status } = this.#redis;
    const says = `the client's status is "${status}"${this.#nodes.suspicion}`;
    return { connecting: CONNECTING.includes(status), says };
  }

  /** Whether a command goes out at once. */
  get isConnected(): boolean {
    return this.#redis.status === 'ready';
  }

  /**
   * Waits for the connection and resolves to what is left of the time, or to `LEAST_TIME` if that is more. Without this
   * wait, ioredis would queue the look and the command that undoes it, and send both after nobody waits any more. Rejects
   * at once if the server has just refused the login, and if the client was closed: only its owner can connect it again.
   */
  async connected(atMost = this.#longest): Promise<number> {
    const time = Math.min(atMost, this.#longest);
    const awaited = this.#nodes.ended ? undefined : this.#awaitedEvent();
    if (awaited === undefined && !this.#nodes.ended) return time;
    const { failure } = this.#nodes;
    if (isDenial(failure)) throw new NotAsked(failure?.message, { cause: failure });
    const since = now();
    let isOverdue = false;
    if (awaited) isOverdue = !(await this.#emits([awaited, 'end'], time));
    // A client that has just ended emits its event in a moment, by which `nodes` knows whether it may be connected again.
    else await turnOfLoop();
    if (!isOverdue && !this.#nodes.ended) return Math.max(LEAST_TIME, time - (now() - since));
    // Connects a client again that ioredis itself has ended.
    this.#nodes.refreshTopology();
    if (!this.#nodes.ended) {
      // A server that breaks off a handshake, or waits for another one, gives no error.
      const hint = this.#nodes.failure === undefined ? ` (${WHICH_URL})` : '';
      throw new NotAsked(`there is no connection; ${this.reach.says}${hint}`);
    }
    const closed = new Denied(`the client is closed${this.#nodes.suspicion}`);
    throw new NotAsked(closed.message, { cause: closed });
  }

  /**
   * The event from which on the client takes commands; `undefined` if it does. A client that queues need not be ready:
   * queued commands get the error of a refused login.
   */
  #awaitedEvent(): 'connect' | 'ready' | undefined {
    const { status, options } = this.#redis;
    const queues = options?.enableOfflineQueue !== false;
    if (!(queues ? UNCONNECTED : REFUSING).includes(status)) return undefined;
    // Its first command, with which a lazy client begins to connect, would be refused.
    if (status === 'wait') this.#redis.connect().catch(() => {});
    return queues ? 'connect' : 'ready';
  }

  /** Resolves to whether the client emits one of them in time. */
  async #emits(events: ReadonlyArray<'connect' | 'ready' | 'end'>, time: number): Promise<boolean> {
    let ends: Array<() => void> = [];
    const emitted = new Promise<void>((resolve) => {
      ends = events.map((event) => listen(this.#redis, event, () => resolve()));
    });
    try {
      return (await within(emitted, time)) !== OVERDUE;
    } finally {
      for (const end of ends) end();
    }
  }

  /**
   * Runs a script by its hash, and by its text if the server lacks it. Commands that were issued meanwhile are then executed
   * before it. The text is not sent after the time limit: it would arrive after the command that undoes it.
   *
   * @param overdue gets what the client still awaits when the time limit has passed, or it has given up the command itself.
   */
  runScript<Keys extends string[], Args extends string[], Reply>(
    { sha1, lua, keys: count }: Script<Keys, Args, Reply>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost = this.#longest,
    overdue?: (answer: Promise<unknown>) => void,
  ): Promise<Reply> {
    // One promise instead of one for each step, because every call passes here.
    return new Promise((resolve, reject) => {
      const time = Math.min(atMost, this.#longest);
      let answer: Promise<unknown>;
      let isWaiting = true;
      const timer = new AnswerTimer(time, () => {
        isWaiting = false;
        this.#nodes.refreshTopology();
        overdue?.(answer);
        reject(new Error(this.#silence(time)));
      });
      const answered = (reply: unknown): void => {
        timer.stop();
        this.#known?.add(sha1);
        resolve(reply as Reply);
      };
      const failed = (error: unknown): void => {
        timer.stop();
        if (isWaiting && !isReply(error)) this.#nodes.refreshTopology();
        const late = isWaiting && overdue !== undefined ? sentAgain(error) : undefined;
        if (late !== undefined) overdue?.(late);
        reject(presentable(error));
      };
      const sendText = () => {
        answer = this.#redis.eval(lua, count, ...keys, ...args);
        answer.then(answered, failed);
      };
      if (this.#known?.has(sha1) === false) {
        sendText();
        return;
      }
      answer = this.#redis.evalsha(sha1, count, ...keys, ...args);
      answer.then(answered, (error: unknown) => {
        const isMiss = isUnknownScript(error);
        if (isMiss) this.#known = new Set();
        if (isMiss && isWaiting) sendText();
        else failed(error);
      });
    });
  }

  /**
   * Bounds a reply. ioredis has `commandTimeout` off by default, and a connection may stay 'ready' although one
   * direction is silent.
   */
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

  #silence(time: number): string {
    return `it did not answer a command within ${Math.round(time)} ms; ${this.reach.says}`;
  }
}
