type Listener = (error?: Error) => void;

interface Emitter<Event extends string> {
  on(event: Event, listener: Listener): unknown;
  off(event: Event, listener: Listener): unknown;
}

/** Of each client, by the event. */
const hubs = new WeakMap<object, Map<string, Hub>>();

class Hub {
  readonly listeners = new Set<Listener>();
  readonly tell: Listener = (error) => {
    for (const listener of this.listeners) listener(error);
  };
}

/**
 * Calls the listener at each such event; the function that it gives ends that. However many stores share a client, it has one
 * listener of ours for an event, because Node warns of more than ten.
 */
export function listen<Event extends string>(emitter: Emitter<Event>, event: Event, listener: Listener): () => void {
  const hub = hubOf(emitter, event);
  if (hub.listeners.size === 0) emitter.on(event, hub.tell);
  const own: Listener = (error) => listener(error);
  hub.listeners.add(own);
  return () => {
    if (hub.listeners.delete(own) && hub.listeners.size === 0) emitter.off(event, hub.tell);
  };
}

function hubOf(emitter: object, event: string): Hub {
  const ofClient = hubs.get(emitter) ?? new Map<string, Hub>();
  hubs.set(emitter, ofClient);
  const hub = ofClient.get(event) ?? new Hub();
  ofClient.set(event, hub);
  return hub;
}
