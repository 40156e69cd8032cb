import { onceForEach } from '../base/once-for-each.js';

type EventListener = (error?: Error) => void;

interface Emitter<Event extends string> {
  on(event: Event, listener: EventListener): unknown;
  off(event: Event, listener: EventListener): unknown;
}

class EventListeners {
  readonly listeners = new Set<EventListener>();
  readonly tell: EventListener = (error) => {
    for (const listener of this.listeners) listener(error);
  };
}

/**
 * Adds a listener and returns the function that removes it. All stores that share a client use one listener for each
 * event, because Node warns of more than ten.
 */
export function listen<Event extends string>(
  emitter: Emitter<Event>,
  event: Event,
  listener: EventListener,
): () => void {
  const hub = hubOf(emitter, event);
  if (hub.listeners.size === 0) emitter.on(event, hub.tell);
  const own: EventListener = (error) => listener(error);
  hub.listeners.add(own);
  return () => {
    if (hub.listeners.delete(own) && hub.listeners.size === 0) emitter.off(event, hub.tell);
  };
}

/** The listeners of each client, by event. */
const hubsOf = onceForEach((_client: object) => new Map<string, EventListeners>());

function hubOf(emitter: object, event: string): EventListeners {
  const ofClient = hubsOf(emitter);
  const hub = ofClient.get(event) ?? new EventListeners();
  ofClient.set(event, hub);
  return hub;
}
