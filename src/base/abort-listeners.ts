import { setMaxListeners } from 'node:events';

export interface AbortListener {
  handleEvent(): void;
}

/** Calls `listener` when the signal aborts. Does nothing for a signal that has aborted already. */
export function onAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  if (signal === undefined) return;
  // Node warns of more than ten, and one signal may be that of all callers of a process.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
}

export function offAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  signal?.removeEventListener('abort', listener);
}
