import { channel } from 'node:diagnostics_channel';
import { now } from './clock.js';
import { quoted, reason, shown, tryRead } from './errors.js';

/**
 * What happens in the background and does not change a result. A failed release, for example, only costs the next
 * holder the rest of the lease.
 */
export type FencedLockEvent =
  /** A look at a key in Redis failed. It is repeated within the wait time. */
  | { readonly type: 'look-failed'; readonly key: string; readonly error: unknown }
  /** Postgres could not be reached for an admission. It is tried again within the wait time. */
  | { readonly type: 'postgres-unavailable'; readonly key: string; readonly error: unknown }
  /** A release did not reach Redis. It is sent again until the lease has expired. */
  | { readonly type: 'release-failed'; readonly key: string; readonly error: unknown }
  /** A lease ended before its work did. */
  | { readonly type: 'lease-lost'; readonly key: string; readonly error: unknown }
  /**
   * Wake-ups of a server do not arrive at the moment. Emitted once until they arrive again. Meanwhile waiting callers
   * look at intervals; with several nodes (`node`, counted from 0) only if a majority is affected.
   */
  | { readonly type: 'subscriber-down'; readonly node?: number; readonly error: unknown }
  /**
   * Redis could not be reached, so calls go on without it (`onRedisUnavailable: 'postgres'`); Redis can be reached
   * again.
   */
  | { readonly type: 'redis-passed-by'; readonly error: unknown }
  | { readonly type: 'redis-back' }
  /**
   * One of several nodes (`redis: [a, b, c]`, counted from 0) failed, and the others decide without it; the node
   * answers again.
   */
  | { readonly type: 'node-down'; readonly node: number; readonly error: unknown }
  | { readonly type: 'node-back'; readonly node: number }
  /** A backend of Postgres was ended, because its transaction blocked an admission or its outcome had to be decided. */
  | { readonly type: 'backend-ended'; readonly key: string; readonly pid: number }
  /** COMMIT got no answer, and the outcome was looked up in Postgres. */
  | { readonly type: 'commit-resolved'; readonly key: string; readonly outcome: 'committed' | 'aborted' | 'unknown' }
  /** A hook of a lock threw. The transaction's outcome, and the call's result, are what they are. */
  | {
      readonly type: 'hook-failed';
      readonly key: string;
      readonly hook: 'afterCommit' | 'afterRollback' | 'onUnknown';
      readonly error: unknown;
    };

export type Emit = (event: FencedLockEvent) => void;

/** Adds the number of the node to its events. */
export function emitOf(node: number, emit: Emit): Emit {
  return (event) => emit(event.type === 'subscriber-down' ? { ...event, node } : event);
}

/** For whoever listens to the channel of the event. */
export function publishEvent(event: FencedLockEvent): void {
  channel(`fenced-lock:${event.type}`).publish(event);
}

/** Catches errors of the listener: they must not affect a transaction. */
export function toEmit(listener: ((event: FencedLockEvent) => void) | undefined): Emit {
  if (listener === undefined) return publishAndWarn;
  const warn = (error: unknown) => process.emitWarning(`A listener of fencedLock events threw: ${shown(error)}`);
  return (event) => {
    publishEvent(event);
    try {
      // The listener may be an async function, whose unhandled rejection would end the process.
      Promise.resolve<unknown>(listener(event)).catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}

/** At most one warning in this time says that Postgres is away; milliseconds. */
const WARN_EVERY = 60_000;
let warnedAt = Number.NEGATIVE_INFINITY;

/**
 * Without a listener, nobody would see the error of a hook, which is the application's own, nor why a call waits.
 */
function publishAndWarn(event: FencedLockEvent): void {
  publishEvent(event);
  if (event.type === 'hook-failed') {
    const { hook, key, error } = event;
    const detail = framesOf(error);
    process.emitWarning(
      `A hook (${hook}) of the lock ${quoted(key)} threw, and \`onEvent\` is not set: ${shown(error)}`,
      { code: 'FENCED_LOCK_HOOK', ...(detail !== undefined && { detail }) },
    );
  }
  // Emitted once until the subscription is there. An outage has its warning where the client fails to connect.
  if (event.type === 'subscriber-down' && /\bNOPERM\b/.test(shown(event.error))) {
    process.emitWarning(
      `Redis refuses wake-ups${reason(event.error)}. Meanwhile callers that wait look at intervals. Grant the right, or ` +
        "set `wake: 'poll'` in all processes. This is said once; for each time, set `onEvent`.",
      { code: 'FENCED_LOCK_REDIS' },
    );
  }
  if (event.type === 'postgres-unavailable' && now() - warnedAt > WARN_EVERY) {
    warnedAt = now();
    process.emitWarning(
      `Postgres cannot be reached for the lock ${quoted(event.key)}${reason(event.error)}. Its call tries again within ` +
        'its waitTime. This is said at most once a minute; for each try, set `onEvent`.',
      { code: 'FENCED_LOCK_POSTGRES' },
    );
  }
}

/** The stack of a thrown value without its first lines, which repeat the message. Node.js prints it below the warning. */
function framesOf(error: unknown): string | undefined {
  const stack: unknown = tryRead(() => error instanceof Error && error.stack);
  const at = typeof stack === 'string' ? stack.search(/^ {4}at /m) : -1;
  return at === -1 ? undefined : (stack as string).slice(at);
}
