import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { now } from '../base/clock.js';
import { brief } from './health.js';
import type { Happening, ProcessWatcher } from './source.js';

/** What the channels of the lock carry, as far as it is read here. All clients of this process publish on them. */
interface Message {
  readonly key?: string;
  readonly error?: unknown;
  readonly node?: number;
  readonly pid?: number;
  readonly outcome?: string;
}

/** The events of `onEvent`, each on a channel of its own, in words. */
const EVENTS: Readonly<Record<string, { readonly bad: boolean; text(message: Message): string }>> = {
  'look-failed': { bad: true, text: ({ error }) => `A look in Redis had no usable answer: ${brief(error)}.` },
  'postgres-unavailable': { bad: true, text: ({ error }) => `Postgres cannot be reached: ${brief(error)}.` },
  'release-failed': { bad: true, text: ({ error }) => `A release did not reach Redis: ${brief(error)}.` },
  'lease-lost': { bad: true, text: ({ error }) => `${brief(error)}.` },
  'subscriber-down': { bad: true, text: ({ error }) => `Wake-ups of Redis are not heard: ${brief(error)}.` },
  'redis-passed-by': { bad: true, text: ({ error }) => `Redis is away, calls go on without it: ${brief(error)}.` },
  'redis-back': { bad: false, text: () => 'Redis is back.' },
  'node-down': { bad: true, text: ({ node = 0, error }) => `Redis node ${node + 1} failed: ${brief(error)}.` },
  'node-back': { bad: false, text: ({ node = 0 }) => `Redis node ${node + 1} is back.` },
  'backend-ended': { bad: true, text: ({ pid }) => `Backend ${pid} of Postgres was ended: it stood in the way.` },
  'commit-resolved': { bad: false, text: ({ outcome }) => `A COMMIT without an answer turned out as: ${outcome}.` },
};

/** Hears of waits, refused writes and events until the function that it gives is called. Nobody pays for it before. */
export function watchProcess(watcher: ProcessWatcher): () => void {
  const began = new WeakMap<object, number>();
  const listeners = new Map<string, (message: unknown) => void>([
    ['tracing:fenced-lock:wait:start', (message) => void began.set(message as object, now())],
    [
      'tracing:fenced-lock:wait:asyncEnd',
      (message) => {
        const since = began.get(message as object);
        if (since !== undefined) watcher.waited(now() - since);
      },
    ],
    ['tracing:fenced-lock:transaction:error', (message) => refusal(message as Message, watcher)],
    ...Object.entries(EVENTS).map(([type, { bad, text }]): [string, (message: unknown) => void] => [
      `fenced-lock:${type}`,
      (message) => {
        const { key } = message as Message;
        watcher.happened({ type, bad, key, text: text(message as Message) });
      },
    ]),
  ]);
  for (const [name, listener] of listeners) subscribe(name, listener);
  return () => {
    for (const [name, listener] of listeners) unsubscribe(name, listener);
  };
}

/** Of the errors that a transaction ends with, the one that the fence is for. */
function refusal({ error }: Message, watcher: ProcessWatcher): void {
  const { code, key, meta } = (error ?? {}) as {
    code?: unknown;
    key?: string;
    meta?: { fencedLock?: { key?: string } };
  };
  if (code !== 'STALE_TOKEN') return;
  const happening: Happening = {
    type: 'stale-write',
    bad: true,
    key: key ?? meta?.fencedLock?.key,
    text: `${brief(error)}.`,
  };
  watcher.happened(happening);
}
