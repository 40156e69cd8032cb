// What the server has told, and nothing about how it is shown.

import type { Row } from '../keys.js';
import type { Status } from '../poller.js';

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
  /** Whether the keys are known at all. */
  known = false;
  status: Status | undefined;
  /** Whether the server of the board sends events. `undefined` before its first one. */
  isConnected: boolean | undefined;
  /** When the keys were seen last. */
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
    return this.known && (this.isConnected === false || this.status?.seenAt === undefined || this.isTroubled);
  }

  get isTroubled(): boolean {
    return this.status?.trouble !== undefined;
  }

  /** Turns of all keys in the bar before the present one, a second. */
  get rate(): number {
    let turns = 0;
    for (const { bars } of this.keys.values()) turns += bars.at(-2) ?? 0;
    return turns / BAR;
  }

  #change({ all = false, keys, gone }: Change): void {
    if (all) this.keys.clear();
    this.known = true;
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
