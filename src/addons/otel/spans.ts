import { type Context, context, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { isNotNow } from '../../base/call-trace.js';
import { shown, toFencedLockError, tryRead } from '../../base/errors.js';
import type { LockMessage, LockOutcome, TracedMessage } from '../../base/messages.js';
import { GROUP, type GroupOf, KEYS, OPERATION, OUTCOME, TOKEN, typeOfError, VIA } from './attributes.js';
import { onTraced } from './subscriptions.js';

/** Only the last two are active: the transaction may be begun in a wait, and outlives it. */
const PARTS = ['wait', 'admission', 'work', 'commit'] as const;

/** A span for each call, with one for its wait, each admission, run of the function and COMMIT. */
export function recordSpans(tracer: Tracer, group: GroupOf, withKeys: boolean): () => void {
  const end = (span: Span, failure: Failure | undefined, outcome?: LockOutcome) =>
    endOf(span, failure, withKeys, outcome);
  /** The contexts of calls, in which the spans of their parts are. */
  const wholes = new WeakMap<LockMessage, Context>();
  const ends = [
    onTraced('fenced-lock:lock', (message) => {
      const name = group(message.keys[0] as string);
      const span = tracer.startSpan(`lock ${name}`, {
        attributes: {
          [GROUP]: name,
          [OPERATION]: message.operation,
          ...(withKeys && { [KEYS]: [...message.keys] }),
        },
      });
      const inside = trace.setSpan(context.active(), span);
      wholes.set(message, inside);
      activate(message, inside);
      return (ended) => {
        if (ended.token !== undefined) span.setAttribute(TOKEN, String(ended.token));
        end(span, failureOf(ended), ended.outcome);
      };
    }),
    ...PARTS.map((name) =>
      onTraced(`fenced-lock:${name}`, (message) => {
        const parent = wholes.get(message.call) ?? context.active();
        const span = tracer.startSpan(name, {}, parent);
        if (name === 'work' || name === 'commit') activate(message, trace.setSpan(parent, span));
        return (ended) => {
          const { outcome, via, error } = ended as { outcome?: LockOutcome; via?: readonly string[]; error?: unknown };
          if (via !== undefined) span.setAttribute(VIA, [...via]);
          const isWell = name === 'wait' && isNotNow({ call: ended.call, begun: false }, error);
          end(span, isWell ? undefined : failureOf(ended), outcome);
        };
      }),
    ),
  ];
  return () => {
    for (const stop of ends) stop();
  };
}

/** What is traced by the message runs in this context, as others have set it up. */
function activate(message: TracedMessage, inside: Context): void {
  const { around } = message;
  message.around = (action) => context.with(inside, () => (around === undefined ? action() : around(action)));
}

interface Failure {
  readonly error: unknown;
}

/** An error may be `undefined`: a function can reject with anything. */
function failureOf(message: TracedMessage): Failure | undefined {
  return 'error' in message ? { error: message.error } : undefined;
}

function endOf(span: Span, failure: Failure | undefined, withKeys: boolean, outcome?: LockOutcome): void {
  if (outcome !== undefined) span.setAttribute(OUTCOME, outcome);
  if (failure !== undefined) {
    const { error } = failure;
    span.setAttributes(typeOfError(error));
    const exception = shownOf(error, withKeys);
    span.recordException(exception);
    const message = typeof exception === 'string' ? exception : exception.message;
    span.setStatus({ code: SpanStatusCode.ERROR, message });
  }
  span.end();
}

interface Shown {
  /** OpenTelemetry takes it for the type of the exception, before the name. */
  readonly code?: string | number;
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
}

/** The messages of this package name keys. */
function shownOf(error: unknown, withKeys: boolean): string | Shown {
  const own = withKeys ? undefined : toFencedLockError(error);
  if (own) return { name: own.name, message: own.code };
  // What a subscriber throws would end the process.
  const read = () => {
    if (!(error instanceof Error)) return undefined;
    const { code, name, message, stack = '' } = error as Error & { readonly code?: unknown };
    const type = typeof code === 'string' || typeof code === 'number' ? { code } : {};
    return { ...type, name: String(name), message: String(message), stack: String(stack) };
  };
  return tryRead(read) ?? shown(error);
}
