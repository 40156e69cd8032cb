import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { now } from '../../base/clock.js';
import { codeOf, type StaleTokenError, toFencedLockError } from '../../base/errors.js';
import type { FencedLockEvent } from '../../base/events.js';
import { recordLockHistory } from '../../call/recorder.js';
import { brief } from './health.js';
import type { ProcessWatcher } from './source.js';

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

/**
 * Reports waits, timeouts, refused writes and events of this process until the returned function is called. Before, calls
 * publish nothing for it.
 */
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
    ['tracing:fenced-lock:lock:asyncEnd', (message) => timeout(message as Message, watcher)],
    ['tracing:fenced-lock:transaction:error', (message) => staleWrite(message as Message, watcher)],
    ...Object.entries(SENTENCES).map(([type, text]): [string, (message: unknown) => void] => [
      `fenced-lock:${type}`,
      (given) => {
        const message = given as Message;
        watcher.note({ type, bad: isBad(type, message), key: message.key, text: text(message) });
      },
    ]),
  ]);
  for (const [name, listener] of listeners) subscribe(name, listener);
  // The history of a key has the durations and the errors of turns that are recorded from now on.
  const stopRecording = recordLockHistory();
  return () => {
    stopRecording();
    for (const [name, listener] of listeners) unsubscribe(name, listener);
  };
}

/** Reports a call that did not get its key within its wait time. One whose function threw such an error got its key. */
function timeout({ keys = [], error, outcome }: Message, watcher: ProcessWatcher): void {
  if (outcome !== 'not-admitted' || codeOf(error) !== 'LOCK_TIMEOUT') return;
  watcher.note({ type: 'timeout', bad: true, key: keys[0], text: `${brief(error)}.` });
}

/** Reports a transaction that was refused because its token was stale. Other errors of transactions are the caller's. */
function staleWrite({ error }: Message, watcher: ProcessWatcher): void {
  if (codeOf(error) !== 'STALE_TOKEN') return;
  // Prisma may have wrapped the error of this package.
  const refusal = (toFencedLockError(error) ?? error) as StaleTokenError;
  watcher.note({ type: 'stale-write', bad: true, key: refusal.key, text: sentenceOf(refusal) });
}

function sentenceOf({ token, fence, model, reason }: StaleTokenError): string {
  switch (reason) {
    case 'superseded':
      return `The key has a newer holder than the one with the token ${token}.`;
    case 'forgotten':
      return `Postgres has no row of the key any more, in which the token ${token} was registered.`;
    default: {
      const carries = fence === undefined ? 'a higher token' : `the token ${fence}`;
      return `A row of ${model ?? 'a table'} carries ${carries}, so the write with the token ${token} was refused.`;
    }
  }
}
