import { AnswerTimer, now, OVERDUE, turnOfLoop, within } from '../base/clock.js';
import { Denied, isDenial, NotAsked } from '../waiting/store.js';
import type { ClusterClient, RedisClient } from './client.js';
import { isReply, presentable, WHICH_URL } from './errors.js';
import { sentAgain } from './ioredis-bugs.js';
import { isUnknownScript, type Script } from './script.js';
import { listen } from './shared-listeners.js';
import type { Nodes } from './topology/nodes.js';

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

  /**
   * Waits for the connection and resolves to what is left of the time, or to `LEAST_TIME` if that is more. Without this
   * wait, ioredis would queue the look and the command that undoes it, and send both after nobody waits any more. Rejects
   * at once if the server refuses the login, and if the client was closed: only its owner can connect it again.
   */
  async #connected(time: number): Promise<number> {
    const since = now();
    if (this.#redis.status === 'wait') this.#redis.connect().catch(() => {});
    // A client that has just ended emits its event in a moment, by which `nodes` knows whether it may be connected again.
    if (this.#nodes.ended) await turnOfLoop();
    await this.#waitForConnection(time);
    if (this.#redis.status === 'ready') return Math.max(LEAST_TIME, time - (now() - since));
    // Connects a client again that ioredis itself has ended.
    this.#nodes.refreshTopology();
    const { ended, failure } = this.#nodes;
    if (ended) {
      const closed = new Denied(`the client is closed${this.#nodes.suspicion}`);
      throw new NotAsked(closed.message, { cause: closed });
    }
    if (isDenial(failure)) throw new NotAsked(failure?.message, { cause: failure });
    // A server that breaks off a handshake, or waits for another one, gives no error.
    const hint = failure === undefined && this.#redis.status !== 'connect' ? ` (${WHICH_URL})` : '';
    throw new NotAsked(`there is no connection; ${this.#status}${hint}`);
  }

  /** Resolves when commands can be sent, when waiting for that is useless, or when the time is over. */
  async #waitForConnection(time: number): Promise<void> {
    const isOver = () => this.#redis.status === 'ready' || this.#nodes.ended || isDenial(this.#nodes.failure);
    if (isOver()) return;
    let ends: Array<() => void> = [];
    const over = new Promise<void>((resolve) => {
      ends = (['ready', 'error', 'end'] as const).map((event) =>
        listen(this.#redis, event, () => isOver() && resolve()),
      );
    });
    await within(over, time);
    for (const end of ends) end();
  }

  /**
   * Runs a script when there is a connection: by its hash, and by its text if the server lacks it. Commands that were issued
   * meanwhile are then executed before it. The text is not sent after the time limit: it would arrive after the command that
   * undoes it.
   *
   * @param overdue gets what the client still awaits when the time limit has passed, or it has given up the command itself.
   */
  runScript<Keys extends string[], Args extends string[], Reply>(
    script: Script<Keys, Args, Reply>,
    keys: NoInfer<Keys>,
    args: NoInfer<Args>,
    atMost = this.#longest,
    overdue?: (answer: Promise<unknown>) => void,
  ): Promise<Reply> {
    const time = Math.min(atMost, this.#longest);
    const rest = [...keys, ...args];
    if (this.#redis.status === 'ready') return this.#send(script, rest, time, overdue);
    return this.#connected(time).then((left) => this.#send(script, rest, left, overdue));
  }

  #send<Reply>(
    { sha1, lua, keys: count }: Script<string[], string[], Reply>,
    rest: string[],
    time: number,
    overdue?: (answer: Promise<unknown>) => void,
  ): Promise<Reply> {
    // One promise instead of one for each step, because every call passes here.
    return new Promise((resolve, reject) => {
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
        answer = this.#redis.eval(lua, count, ...rest);
        answer.then(answered, failed);
      };
      if (this.#known?.has(sha1) === false) {
        sendText();
        return;
      }
      answer = this.#redis.evalsha(sha1, count, ...rest);
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
    return `it did not answer a command within ${Math.round(time)} ms; ${this.#status}`;
  }

  get #status(): string {
    return `the client's status is "${this.#redis.status}"${this.#nodes.suspicion}`;
  }
}
