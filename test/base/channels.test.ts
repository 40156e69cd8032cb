import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, expect, test, vi } from 'vitest';
import { isTraced, Phase } from '../../src/base/channels.js';
import { type FencedLockEvent, publishEvent, toEmit } from '../../src/base/events.js';
import type { LockMessage } from '../../src/base/messages.js';

const NAME = 'fenced-lock:lock';
const PARTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];
const message = (): LockMessage => ({
  operation: '$withLock',
  keys: ['stock:1'],
  process: 'test',
  roomId: 1,
  waitTime: 1,
  leaseTime: 1,
  timeout: 1,
});
const undo: Array<() => void> = [];
afterEach(() => {
  for (const each of undo.splice(0)) each();
  vi.restoreAllMocks();
});

/** Subscribes until the end of the test. */
function on(name: string, hear: (message: never) => void): void {
  const listener = (message: unknown) => hear(message as never);
  subscribe(name, listener);
  undo.push(() => unsubscribe(name, listener));
}

test.each(PARTS)('a call is traced where %s has a subscriber', (part) => {
  expect(isTraced()).toBe(false);
  on(`tracing:fenced-lock:commit:${part}`, () => {});
  expect(isTraced()).toBe(true);
});

test('a phase is published in the order of a tracing channel, with one message', () => {
  const heard: Array<[string, unknown]> = [];
  for (const part of PARTS) on(`tracing:${NAME}:${part}`, (message) => heard.push([part, message]));
  const phase = new Phase(NAME, message());
  expect(phase.begin(() => 7)).toBe(7);
  const failure = new Error('no');
  phase.fail(failure);
  phase.succeed();
  const parts = heard.map(([part]) => part);
  expect(parts).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
  expect(new Set(heard.map(([, message]) => message))).toEqual(new Set([phase.message]));
  expect(phase.message.error).toBe(failure);
});

test('what is traced runs in the context that a subscriber sets up, once, whatever that does', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const arounds: Array<(action: () => void) => void> = [
    (action) => action(),
    (action) => {
      action();
      action();
    },
    () => {},
    () => {
      throw new Error('a bad subscriber');
    },
    (action) => {
      action();
      throw new Error('a bad subscriber');
    },
  ];
  for (const around of arounds) {
    const runs = vi.fn(() => 'result');
    const hear = (message: LockMessage) => {
      message.around = around;
    };
    on(`tracing:${NAME}:start`, hear);
    expect(new Phase(NAME, message()).begin(runs)).toBe('result');
    expect(runs).toHaveBeenCalledOnce();
  }
  expect(warned).toHaveBeenCalledTimes(2);
});

test.each<FencedLockEvent>([
  { type: 'look-failed', key: 'k', error: 1 },
  { type: 'postgres-unavailable', key: 'k', error: 1 },
  { type: 'release-failed', key: 'k', error: 1 },
  { type: 'lease-lost', key: 'k', error: 1 },
  { type: 'subscriber-down', error: 1 },
  { type: 'redis-passed-by', error: 1 },
  { type: 'redis-back' },
  { type: 'node-down', node: 1, error: 1 },
  { type: 'node-back', node: 1 },
  { type: 'backend-ended', key: 'k', pid: 1 },
  { type: 'commit-resolved', key: 'k', outcome: 'unknown' },
])('the event $type has a channel of its own, with and without onEvent', (event) => {
  const heard: FencedLockEvent[] = [];
  on(`fenced-lock:${event.type}`, (message) => heard.push(message));
  publishEvent(event);
  toEmit(undefined)(event);
  toEmit(() => {})(event);
  expect(heard).toEqual([event, event, event]);
});
