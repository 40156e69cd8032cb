export interface AbortListener {
  handleEvent(): void;
}

/** Uses one listener for each signal, however many callers share the signal, because Node warns of more than ten. */
class AbortListeners implements AbortListener {
  readonly listeners = new Set<AbortListener>();

  handleEvent(): void {
    for (const listener of this.listeners) listener.handleEvent();
  }
}

const hubs = new WeakMap<AbortSignal, AbortListeners>();

/** Calls `listener` when the signal aborts. Does nothing for a signal that has aborted already. */
export function onAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  if (signal === undefined) return;
  let hub = hubs.get(signal);
  if (hub === undefined) {
    hub = new AbortListeners();
    hubs.set(signal, hub);
    signal.addEventListener('abort', hub, { once: true });
  }
  hub.listeners.add(listener);
}

export function offAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  const hub = signal && hubs.get(signal);
  if (!hub?.listeners.delete(listener) || hub.listeners.size > 0) return;
  signal?.removeEventListener('abort', hub);
  hubs.delete(signal as AbortSignal);
}
