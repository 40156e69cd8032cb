import type { Attributes, Meter } from '@opentelemetry/api';
import { now } from '../../base/clock.js';
import { codeOf } from '../../base/errors.js';
import { errorType, GROUP, type GroupOf, OUTCOME, VIA } from './attributes.js';
import { onEvent, onTraced } from './subscriptions.js';

/** Seconds: from a call that finds the key free, about a round trip, to the longest waits that people set up. */
const WAIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Seconds: a short transaction, to handles that are held for minutes. */
const HOLD_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Counts and times of the locks of this process. */
export function recordMetrics(meter: Meter, group: GroupOf): (() => void)[] {
  const waitTime = meter.createHistogram('fenced_lock.wait.duration', {
    description: 'How long calls waited for their leases',
    unit: 's',
    advice: { explicitBucketBoundaries: WAIT_BUCKETS },
  });
  const holdTime = meter.createHistogram('fenced_lock.hold.duration', {
    description: 'How long calls and handles had their leases',
    unit: 's',
    advice: { explicitBucketBoundaries: HOLD_BUCKETS },
  });
  const waiting = meter.createUpDownCounter('fenced_lock.callers.waiting', {
    description: 'Calls of this process that wait for their leases',
    unit: '{caller}',
  });
  const held = meter.createUpDownCounter('fenced_lock.keys.held', {
    description: 'Keys that calls and handles of this process have',
    unit: '{key}',
  });
  const counter = (name: string, unit: string, description: string) => meter.createCounter(name, { unit, description });
  const turns = counter('fenced_lock.turns', '{turn}', 'Leases that calls got, by how they came by them');
  const timeouts = counter('fenced_lock.timeouts', '{call}', 'Calls that did not get the lock within their wait time');
  const stale = counter('fenced_lock.stale_writes', '{transaction}', 'Transactions refused because a token was stale');
  const lost = counter('fenced_lock.leases.lost', '{lease}', 'Leases that ended before their work did');
  const ended = counter('fenced_lock.backends.ended', '{backend}', 'Postgres backends that were ended');
  const unreleased = counter('fenced_lock.releases.failed', '{release}', 'Releases that did not reach Redis');
  const unknown = counter('fenced_lock.outcomes.unknown', '{transaction}', 'Transactions of unknown outcome');

  const of = (key: string): Attributes => ({ [GROUP]: group(key) });
  return [
    onTraced('fenced-lock:lock', () => ({ keys, error, outcome }) => {
      if (outcome === 'not-admitted' && codeOf(error) === 'LOCK_TIMEOUT') timeouts.add(1, of(keys[0] as string));
    }),
    onTraced('fenced-lock:wait', ({ call }) => {
      const labels = of(call.keys[0] as string);
      const since = now();
      waiting.add(1, labels);
      return ({ error }) => {
        waiting.add(-1, labels);
        waitTime.record((now() - since) / 1_000, { ...labels, ...(error !== undefined && errorType(error)) });
      };
    }),
    onTraced('fenced-lock:hold', ({ call, via }) => {
      const since = now();
      const all = call.keys.map(of);
      for (const [at, labels] of all.entries()) {
        held.add(1, labels);
        turns.add(1, { ...labels, [VIA]: via[at] as string });
      }
      return () => {
        for (const labels of all) held.add(-1, labels);
        const outcome = call.outcome === undefined ? {} : { [OUTCOME]: call.outcome };
        holdTime.record((now() - since) / 1_000, { ...all[0], ...outcome });
      };
    }),
    onTraced('fenced-lock:transaction', () => ({ call, error }) => {
      if (codeOf(error) === 'STALE_TOKEN') stale.add(1, of(call.keys[0] as string));
    }),
    onEvent('fenced-lock:lease-lost', ({ key }) => lost.add(1, of(key))),
    onEvent('fenced-lock:backend-ended', ({ key }) => ended.add(1, of(key))),
    onEvent('fenced-lock:release-failed', ({ key }) => unreleased.add(1, of(key))),
    onEvent('fenced-lock:commit-resolved', ({ key, outcome }) => {
      if (outcome === 'unknown') unknown.add(1, of(key));
    }),
  ];
}
