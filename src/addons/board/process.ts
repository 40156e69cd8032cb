import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { now } from '../../base/clock.js';
import { codeOf, type StaleTokenError, toFencedLockError } from '../../base/errors.js';
import type { FencedLockEvent } from '../../base/events.js';
import { recordLockHistory } from '../../call/recorder.js';
import { brief } from './health.js';

/** How many events are kept. */
const SHOWN = 10;
/** Upper ends of the columns of the histogram of waits; milliseconds. The last column has no end. */
const WAIT_BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];

/** An event in this process. */
interface Happening {
  readonly at: number;
  /** The type of an event of `onEvent`, such as `lease-lost`, or `timeout`, or `stale-write`. */
  readonly type: string;
  /** Something was refused, lost or down; `false`: it works again. */
  readonly bad: boolean;
  readonly key?: string | undefined;
  /** A sentence. */
  readonly text: string;
}

/** What this process has told since the board was opened. */
export class Happened {
  /** The newest first. */
  readonly events: Happening[] = [];
  timeouts = 0;
  refused = 0;
  lost = 0;
  readonly waits = { bounds: WAIT_BOUNDS, counts: Array<number>(WAIT_BOUNDS.length + 1).fill(0), longest: 0 };

  note(happening: Omit<Happening, 'at'>): void {
    this.events.unshift({ at: Date.now(), ...happening });
    this.events.splice(SHOWN);
    if (happening.type === 'timeout') this.timeouts++;
    if (happening.type === 'stale-write') this.refused++;
    if (happening.type === 'lease-lost') this.lost++;
  }

  /** A caller has ended its wait for a key, whether it got the key or not. */
  waited(ms: number): void {
    const { bounds, counts, longest } = this.waits;
    const column = bounds.findIndex((bound) => ms <= bound);
    const at = column < 0 ? bounds.length : column;
    counts[at] = (counts[at] ?? 0) + 1;
    this.waits.longest = Math.max(longest, ms);
  }
}

/** The fields of the channels' messages that are read here. All clients of this process publish on the channels. */
interface Message {
  readonly key?: string;
  readonly keys?: readonly string[];
  readonly error?: unknown;
  readonly node?: number;
  readonly pid?: number;
  readonly outcome?: string;
  readonly hook?: string;
}

/** One sentence for each type of event. Each type has its own channel. */
const SENTENCES: Readonly<Record<FencedLockEvent['type'], (message: Message) => string>> = {
  'look-failed': ({ error }) => `A look in Redis had no usable answer: ${brief(error)}.`,
  'postgres-unavailable': ({ error }) => `Postgres cannot be reached: ${brief(error)}.`,
  'release-failed': ({ error }) => `A release did not reach Redis: ${brief(error)}.`,
  'lease-lost': ({ error }) => `${brief(error)}.`,
  'subscriber-down': ({ error }) => `Wake-ups do not arrive from Redis: ${brief(error)}.`,
  'redis-passed-by': ({ error }) => `Redis is not reached, calls go on without it: ${brief(error)}.`,
  'redis-back': () => 'Redis is back.',
  'node-down': ({ node = 0, error }) => `Redis node ${node + 1} failed: ${brief(error)}.`,
  'node-back': ({ node = 0 }) => `Redis node ${node + 1} is back.`,
  'backend-ended': ({ pid }) => `Backend ${pid} of Postgres was ended: it blocked another call.`,
  'commit-resolved': ({ outcome }) => `A COMMIT got no answer. Its outcome was looked up: ${outcome}.`,
  'hook-failed': ({ hook, error }) => `A hook of ${hook} threw: ${brief(error)}.`,
};

function isBad(type: string, { outcome }: Message): boolean {
  return type === 'commit-resolved' ? outcome === 'unknown' : !type.endsWith('-back');
}

/** Has all of that noted until the returned function is called. Before, calls publish nothing for it. */
export function watchProcess(happened: Happened): () => void {
  const began = new WeakMap<object, number>();
  const listeners: [channel: string, hear: (message: Message) => void][] = [
    ['tracing:fenced-lock:wait:start', (message) => void began.set(message, now())],
    ['tracing:fenced-lock:wait:asyncEnd', (message) => happened.waited(now() - (began.get(message) ?? now()))],
    ['tracing:fenced-lock:lock:asyncEnd', (message) => noteTimeout(message, happened)],
    ['tracing:fenced-lock:transaction:error', (message) => noteStaleWrite(message, happened)],
    ...Object.entries(SENTENCES).map(([type, text]): [string, (message: Message) => void] => [
      `fenced-lock:${type}`,
      (message) => happened.note({ type, bad: isBad(type, message), key: message.key, text: text(message) }),
    ]),
  ];
  for (const [name, hear] of listeners) subscribe(name, hear as (message: unknown) => void);
  // The history of a key has the durations and the errors of turns that are recorded from now on.
  const stopRecording = recordLockHistory();
  return () => {
    stopRecording();
    for (const [name, hear] of listeners) unsubscribe(name, hear as (message: unknown) => void);
  };
}

/** Notes a call that did not get its key within its wait time. One whose function threw such an error got its key. */
function noteTimeout({ keys = [], error, outcome }: Message, happened: Happened): void {
  if (outcome !== 'not-admitted' || codeOf(error) !== 'LOCK_TIMEOUT') return;
  happened.note({ type: 'timeout', bad: true, key: keys[0], text: `${brief(error)}.` });
}

/** Notes a transaction that was refused because its token was stale. Other errors of transactions are the caller's. */
function noteStaleWrite({ error }: Message, happened: Happened): void {
  if (codeOf(error) !== 'STALE_TOKEN') return;
  // Prisma may have wrapped the error of this package. The advice behind the first sentence is for the caller.
  const refusal = (toFencedLockError(error) ?? error) as StaleTokenError;
  const [text] = brief(refusal).split('. ', 1);
  happened.note({ type: 'stale-write', bad: true, key: refusal.key, text: `${text}.` });
}
