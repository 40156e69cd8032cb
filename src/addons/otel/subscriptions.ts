import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { LockEventChannels, LockTracingChannels } from '../../base/messages.js';

/** Calls `begin` at each start, and what it returned at the end of the same. Ends what is open when it is ended itself. */
export function onTraced<Name extends keyof LockTracingChannels>(
  name: Name,
  begin: (message: LockTracingChannels[Name]) => (message: LockTracingChannels[Name]) => void,
): () => void {
  const open = new Map<LockTracingChannels[Name], (message: LockTracingChannels[Name]) => void>();
  const started = (published: unknown) => {
    const message = published as LockTracingChannels[Name];
    open.set(message, begin(message));
  };
  const ended = (published: unknown) => {
    const message = published as LockTracingChannels[Name];
    const end = open.get(message);
    open.delete(message);
    end?.(message);
  };
  subscribe(`tracing:${name}:start`, started);
  subscribe(`tracing:${name}:asyncEnd`, ended);
  return () => {
    unsubscribe(`tracing:${name}:start`, started);
    unsubscribe(`tracing:${name}:asyncEnd`, ended);
    for (const message of [...open.keys()]) ended(message);
  };
}

export function onEvent<Name extends keyof LockEventChannels>(
  name: Name,
  hear: (event: LockEventChannels[Name]) => void,
): () => void {
  const listener = (event: unknown) => hear(event as LockEventChannels[Name]);
  subscribe(name, listener);
  return () => void unsubscribe(name, listener);
}
