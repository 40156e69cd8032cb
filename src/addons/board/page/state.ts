// What the server has told, and nothing about how it is shown.

import type { Row } from '../keys.js';
import type { Status } from '../poller.js';
import { clock, shownText } from './text.js';

/** How long a bar of a chart is; seconds. As in src/addons/board/keys.ts. */
const BAR = 5;
const TOKENS = 9;

export interface Key extends Row {
  /** By performance.now(). */
  readonly endsAt: number;
  /** Turns in all bars of the chart. */
  readonly total: number;
}

/** A token that has passed. `turns`: how many there were since the last look. */
export interface Passed {
  readonly key: string;
  readonly token: string;
  readonly turns: number;
  readonly at: number;
}

interface Change {
  readonly all?: boolean;
  readonly keys: readonly (Row & { readonly expiresIn: number })[];
  readonly gone: readonly string[];
}

export class State {
  readonly keys = new Map<string, Key>();
  status: Status | undefined;
  /** Whether the server of the board sends events. `undefined` before its first one. */
  isConnected: boolean | undefined;
  /** When the keys were seen last; `undefined`: they are not known at all. */
  seenAt: number | undefined;
  /** The newest first. */
  readonly tokens: Passed[] = [];

  apply(event: string, data: unknown): void {
    if (event === 'keys') this.#change(data as Change);
    if (event === 'status') {
      this.status = data as Status;
      this.seenAt = this.status.seenAt ?? this.seenAt;
    }
  }

  /** Whether what is known of the keys is of the last good look, and not of the present. */
  get isOld(): boolean {
    const isPresent = this.isConnected && this.status?.seenAt !== undefined && this.status.trouble === undefined;
    return this.seenAt !== undefined && !isPresent;
  }

  /** When that was; empty if nothing is known. */
  get asOf(): string {
    return this.seenAt === undefined ? '' : `as of ${clock(this.seenAt)}`;
  }

  /** Whether what is shown is up to date: the class of its dot, and a sentence. */
  link(isPaused: boolean): readonly [kind: '' | 'good' | 'warning' | 'bad', text: string] {
    if (this.isConnected === undefined) return ['', 'Connecting …'];
    const shows = this.asOf && ` What you see is ${this.asOf}.`;
    if (!this.isConnected) return ['bad', `The board’s server does not answer. Trying again …${shows}`];
    if (isPaused) return ['', 'Paused'];
    if (this.isOld) return ['warning', `Connected, but the data is old: ${this.asOf}`];
    return this.status?.trouble === undefined
      ? ['good', 'Live']
      : ['warning', 'Connected, but the keys cannot be read'];
  }

  /** Turns of all keys in the bar before the present one, a second. */
  get rate(): number {
    let turns = 0;
    for (const { bars } of this.keys.values()) turns += bars.at(-2) ?? 0;
    return turns / BAR;
  }

  #change({ all = false, keys, gone }: Change): void {
    if (all) this.keys.clear();
    for (const key of gone) this.keys.delete(key);
    for (const { expiresIn, ...row } of keys) {
      const before = this.keys.get(row.key);
      const total = row.bars.reduce((sum, turns) => sum + turns, 0);
      this.keys.set(row.key, { ...row, endsAt: performance.now() + expiresIn, total });
      if (all || row.token === undefined || row.token === before?.token) continue;
      const turns = before === undefined ? 1 : Number(BigInt(row.turns) - BigInt(before.turns));
      this.tokens.unshift({ key: row.key, token: row.token, turns: Math.max(1, turns), at: Date.now() });
      this.tokens.splice(TOKENS);
    }
  }
}

/** The name of its process, if it is known, with its id in brackets. */
export function holderOf({ holder = '', process }: Key): string {
  return process === undefined ? holder : `${process} (${holder})`;
}

/** What a force release does, with what is known of the key now. */
export function question({ isOld, asOf }: State, key: Key): string {
  const isHeld = key.holder !== undefined;
  const from = isHeld ? shownText(holderOf(key)) : 'what keeps it without a lease';
  const old = isOld ? `This is ${asOf}, and may be different by now. ` : '';
  const elsewhere = isHeld ? ' If it works in another one, it goes on there.' : '';
  const work =
    key.transaction === undefined
      ? `No transaction of it is open in this database; if one is opened by then, it is ended and rolled back.${elsewhere}`
      : `Its open transaction (Postgres backend ${key.transaction.pid}) is ended and rolled back.`;
  const later = isHeld ? 'Later writes of that holder in this database are refused as stale. ' : '';
  const next = 'The next process that waits gets the key. Nothing that was committed is lost.';
  return `Take this key from ${from}?\n\n${old}${work} ${later}${next}`;
}
