// What the server has told, and nothing about how it is shown.

/** Bars of a chart, and how long each is; milliseconds. As in src/addons/board/history.ts. */
export const BARS = 60;
const BAR = 5_000;
/** Of each key so many tokens are kept, and of all together. */
const TOKENS_OF_KEY = 12;
const TOKENS = 9;
const HAPPENED = 100;

/**
 * @typedef {object} Key
 * @property {string} key
 * @property {string | null} holder
 * @property {string | null} process
 * @property {number} endsAt by performance.now()
 * @property {number} waiting
 * @property {Array<string | null>} waiters the names of the first of them, in their order
 * @property {number} callers
 * @property {string | null} problem
 * @property {string | null} token
 * @property {string} turns
 * @property {string | null} admittedAt
 * @property {{ pid: number, since: string } | null} transaction
 * @property {number[]} turnBars
 * @property {number[]} waitingBars
 * @property {number} total turns in all bars
 * @property {Array<{ token: string, at: number }>} tokens
 * @property {number} changedAt by performance.now(), of the token
 *
 * @typedef {{ server: string, check: string, status: string, message: string, remedy?: string }} Finding
 * @typedef {{ type: string, bad: boolean, at: number, key?: string, text: string }} Happening
 * @typedef {{ address: string, role: string, status: string, healthy: boolean }} Server
 * @typedef {object} Status
 * @property {number} now
 * @property {number} took
 * @property {number} interval
 * @property {number} [seenAt] when the keys were seen last
 * @property {{ text: string, since: number }} [trouble]
 * @property {string[]} missing
 * @property {Finding[]} health
 * @property {{ ms: number, bars: number }} minute what of the last minute was watched, and how many of the last bars it is in
 * @property {Server} [postgres] `undefined` as long as it is not known which one it is
 * @property {Server[]} redis
 * @property {{ bounds: number[], counts: number[], longest: number }} [waits]
 */

export class State {
  /** @type {Map<string, Key>} */
  keys = new Map();
  /** Whether the keys are known at all. */
  known = false;
  /** @type {Status | undefined} */
  status;
  /** Whether the server of the board sends events. `undefined` before its first one. @type {boolean | undefined} */
  isConnected;
  /** When the keys were seen last. @type {number | undefined} */
  seenAt;
  /** Whether the server has seen keys since it began to look: after a pause its first look is not done yet. */
  #isSeen = false;
  /** @type {{ title: string, interval: number, token?: string, process: boolean, inMemory: boolean } | undefined} */
  hello;
  /** @type {Happening[]} the newest first */
  happened = [];
  /** Since the board was opened, also those that are not in `happened` any more. */
  counted = { timeouts: 0, refused: 0, lost: 0 };
  /** @type {Array<{ key: string, token: string, turns: number, at: number }>} the newest first */
  tokens = [];
  #bar = 0;

  /**
   * @param {string} event
   * @param {any} data
   */
  apply(event, data) {
    if (event === 'hello') this.hello = data;
    else if (event === 'status') this.#told(data);
    else if (event === 'keys') this.#keys(data);
    else if (event === 'happened') this.#happened(data);
  }

  /** Whether what is known of the keys is of the last good look, and not of the present. */
  get isOld() {
    return this.known && (this.isConnected === false || !this.#isSeen || this.status?.trouble !== undefined);
  }

  /** Turns of all keys in the bar before the present one, a second. */
  get rate() {
    let turns = 0;
    for (const { turnBars } of this.keys.values()) turns += turnBars[BARS - 2] ?? 0;
    return turns / (BAR / 1_000);
  }

  /** @param {Status} status */
  #told(status) {
    this.status = status;
    this.#isSeen = status.seenAt !== undefined;
    this.seenAt = status.seenAt ?? this.seenAt;
  }

  /** @param {{ all?: boolean, bar: number, keys: any[], gone: string[] }} data */
  #keys({ all = false, bar, keys, gone }) {
    if (all) this.keys.clear();
    else this.#shift(bar - this.#bar);
    this.#bar = bar;
    this.known = true;
    this.#isSeen = true;
    for (const key of gone) this.keys.delete(key);
    for (const sent of keys) this.#key(sent, all);
  }

  /**
   * @param {any} sent
   * @param {boolean} all
   */
  #key({ expiresIn, bar, turnBars, waitingBars, ...sent }, all) {
    const before = this.keys.get(sent.key);
    const now = performance.now();
    /** @type {Key} */
    const key = {
      ...sent,
      endsAt: now + expiresIn,
      turnBars: turnBars ?? before?.turnBars ?? Array(BARS).fill(0),
      waitingBars: waitingBars ?? before?.waitingBars ?? Array(BARS).fill(0),
      tokens: before?.tokens ?? [],
      changedAt: before?.changedAt ?? 0,
      total: 0,
    };
    [key.turnBars[BARS - 1], key.waitingBars[BARS - 1]] = bar;
    key.total = key.turnBars.reduce((sum, turns) => sum + turns, 0);
    if (!all && key.token !== null && key.token !== before?.token) this.#passed(key, before, now);
    this.keys.set(key.key, key);
  }

  /**
   * @param {Key} key
   * @param {Key | undefined} before
   * @param {number} now
   */
  #passed(key, before, now) {
    const at = Date.now();
    const token = /** @type {string} */ (key.token);
    key.changedAt = now;
    key.tokens = [{ token, at }, ...key.tokens].slice(0, TOKENS_OF_KEY);
    const turns = before === undefined ? 1 : Number(BigInt(key.turns) - BigInt(before.turns));
    this.tokens = [{ key: key.key, token, turns: Math.max(1, turns), at }, ...this.tokens].slice(0, TOKENS);
  }

  /** @param {number} by */
  #shift(by) {
    if (by <= 0) return;
    const bars = Math.min(by, BARS);
    for (const key of this.keys.values()) {
      for (const list of [key.turnBars, key.waitingBars]) {
        list.splice(0, bars);
        list.push(...Array(bars).fill(0));
      }
      key.total = key.turnBars.reduce((sum, turns) => sum + turns, 0);
    }
  }

  /**
   * @param {{ all?: boolean, happened: Happening[], passedOver: number, timeouts: number, refused: number, lost: number }} data
   */
  #happened({ all = false, happened, timeouts, refused, lost }) {
    if (all) this.happened = [];
    this.counted = { timeouts, refused, lost };
    for (const each of happened) this.happened.unshift(each);
    this.happened.length = Math.min(this.happened.length, HAPPENED);
  }
}
