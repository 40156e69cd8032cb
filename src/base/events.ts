import { quoted } from './errors.js';

/**
 * What happens beside the caller's way and would otherwise go unseen. None of it changes a result: a failed
 * release, for one, costs the next holder the rest of the lease and nothing else.
 */
export type FencedLockEvent =
  /** A look at a key had no usable answer; it is repeated while there is wait time. */
  | { readonly type: 'look-failed'; readonly key: string; readonly error: unknown }
  /** A release did not reach Redis. It is sent again while its lease stands, and the lease ends by itself at the latest. */
  | { readonly type: 'release-failed'; readonly key: string; readonly error: unknown }
  /** A lease ended before its work did. */
  | { readonly type: 'lease-lost'; readonly key: string; readonly error: unknown }
  /**
   * Wake-ups of a server cannot be heard at the moment; told once until they are heard again. Waiting callers look again
   * at intervals instead, with several nodes (`node`, counted from 0) only once most of them are not heard.
   */
  | { readonly type: 'subscriber-down'; readonly node?: number; readonly error: unknown }
  /** Redis could not be reached, so calls go on without it (`onRedisUnavailable: 'postgres'`); and it is back. */
  | { readonly type: 'redis-passed-by'; readonly error: unknown }
  | { readonly type: 'redis-back' }
  /** One of several nodes (`redis: [a, b, c]`, counted from 0) failed: the others decide without it; and it is back. */
  | { readonly type: 'node-down'; readonly node: number; readonly error: unknown }
  | { readonly type: 'node-back'; readonly node: number }
  /** A backend of Postgres was ended, because it stood in the way or its transaction had to be decided. */
  | { readonly type: 'backend-ended'; readonly key: string; readonly pid: number }
  /** COMMIT was not answered, and its outcome was found out by other means. */
  | { readonly type: 'commit-resolved'; readonly key: string; readonly outcome: 'committed' | 'aborted' | 'unknown' }
  /** A hook of a lock threw. The transaction's outcome, and the call's result, are what they are. */
  | {
      readonly type: 'hook-failed';
      readonly key: string;
      readonly hook: 'afterCommit' | 'afterRollback' | 'onUnknown';
      readonly error: unknown;
    };

export type Emit = (event: FencedLockEvent) => void;

/** What one of several nodes tells. */
export function emitOf(node: number, emit: Emit): Emit {
  return (event) => emit(event.type === 'subscriber-down' ? { ...event, node } : event);
}

/** A listener that throws must not decide the fate of a transaction. */
export function toEmit(listener: ((event: FencedLockEvent) => void) | undefined): Emit {
  if (listener === undefined) return warnOfHook;
  const warn = (error: unknown) => process.emitWarning(`A listener of fencedLock events threw: ${String(error)}`);
  return (event) => {
    try {
      // An async function is a listener too, and its rejection would end the process.
      Promise.resolve<unknown>(listener(event)).catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}

/** Where nobody listens: the error of a hook is the application's, and would be seen by nobody at all. */
function warnOfHook(event: FencedLockEvent): void {
  if (event.type !== 'hook-failed') return;
  const { hook, key, error } = event;
  process.emitWarning(
    `A hook (${hook}) of the lock ${quoted(key)} threw, and \`onEvent\` is not set: ${String(error)}`,
  );
}
