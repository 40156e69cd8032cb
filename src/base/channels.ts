import { type Channel, tracingChannel } from 'node:diagnostics_channel';
import { shown } from './errors.js';
import type { LockTracingChannels, TracedMessage } from './messages.js';

/** The channels of Node that one thing is traced by. */
type Channels = Readonly<Record<'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error', Channel>>;

// Held here: a channel that nobody holds is forgotten, with its subscribers.
const TRACED: { readonly [Name in keyof LockTracingChannels]: Channels } = {
  'fenced-lock:lock': tracingChannel('fenced-lock:lock'),
  'fenced-lock:wait': tracingChannel('fenced-lock:wait'),
  'fenced-lock:hold': tracingChannel('fenced-lock:hold'),
  'fenced-lock:transaction': tracingChannel('fenced-lock:transaction'),
  'fenced-lock:admission': tracingChannel('fenced-lock:admission'),
  'fenced-lock:work': tracingChannel('fenced-lock:work'),
  'fenced-lock:commit': tracingChannel('fenced-lock:commit'),
};

const ALL = Object.values(TRACED).flatMap(({ start, end, asyncStart, asyncEnd, error }) => [
  start,
  end,
  asyncStart,
  asyncEnd,
  error,
]);

/** Whether any of the tracing channels has a subscriber: asked once for each call. */
export function isTraced(): boolean {
  for (const each of ALL) if (each.hasSubscribers) return true;
  return false;
}

/** One thing that is traced; there is none where nobody listens. */
export class Phase<Name extends keyof LockTracingChannels> {
  readonly message: LockTracingChannels[Name];
  readonly #channels: Channels;
  #settled = false;

  constructor(name: Name, message: LockTracingChannels[Name]) {
    this.#channels = TRACED[name];
    this.message = message;
  }

  /** It begins with `action`, which runs in the contexts that subscribers have for it; what it waits for ends it later. */
  begin<R>(action: () => R): R {
    const { start, end } = this.#channels;
    return start.runStores(this.message, () => {
      try {
        return inside(this.message, action);
      } finally {
        end.publish(this.message);
      }
    });
  }

  /** The first of this and `fail` counts. */
  succeed(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#channels.asyncStart.publish(this.message);
    this.#channels.asyncEnd.publish(this.message);
  }

  fail(error: unknown): void {
    if (this.#settled) return;
    (this.message as TracedMessage).error = error;
    this.#channels.error.publish(this.message);
    this.succeed();
  }
}

/** A subscriber that fails must not decide the fate of a transaction. */
function inside<R>({ around }: TracedMessage, action: () => R): R {
  if (around === undefined) return action();
  let done: { readonly value: R } | { readonly error: unknown } | undefined;
  try {
    around(() => {
      if (done === undefined) done = outcomeOf(action);
    });
  } catch (error) {
    process.emitWarning(`A subscriber of the channels of fenced-lock threw: ${shown(error)}`);
  }
  done ??= outcomeOf(action);
  if ('error' in done) throw done.error;
  return done.value;
}

function outcomeOf<R>(action: () => R): { readonly value: R } | { readonly error: unknown } {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}
