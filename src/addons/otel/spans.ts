import { type Context, context, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { isNotNow } from '../../base/call-trace.js';
import { shown, toFencedLockError, tryRead } from '../../base/errors.js';
import type { LockMessage, LockOutcome, TracedMessage } from '../../base/messages.js';
import { errorType, GROUP, type GroupOf, KEYS, OPERATION, OUTCOME, TOKEN, VIA } from './attributes.js';
import { onTraced } from './subscriptions.js';

/** Only the last two are active: the transaction may be begun in a wait, and outlives it. */
const PARTS = ['wait', 'admission', 'work', 'commit'] as const;

/** A span for each call, with one for its wait, each admission, run of the function and COMMIT. */
export function recordSpans(tracer: Tracer, group: GroupOf, withKeys: boolean): (() => void)[] {
  /** The contexts of calls, in which the spans of their parts are. */
  const wholes = new WeakMap<LockMessage, Context>();
  return [
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
        endOf(span, ended, withKeys, ended.outcome);
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
          endOf(span, isWell ? undefined : ended, withKeys, outcome);
        };
      }),
    ),
  ];
}

/** What is traced by the message runs in this context, as others have set it up. */
function activate(message: TracedMessage, inside: Context): void {
  const { around } = message;
  message.around = (action) => context.with(inside, () => (around === undefined ? action() : around(action)));
}

/** `failed`: the end of what has failed. Its error may be `undefined`, because a function can reject with anything. */
function endOf(span: Span, failed: TracedMessage | undefined, withKeys: boolean, outcome?: LockOutcome): void {
  if (outcome !== undefined) span.setAttribute(OUTCOME, outcome);
  if (failed !== undefined && 'error' in failed) {
    const { error } = failed;
    // The messages of this package name keys.
    const own = withKeys ? undefined : toFencedLockError(error);
    const exception = own ? { name: own.name, message: own.code } : error instanceof Error ? error : shown(error);
    // A getter of the error's may throw, and what a subscriber throws would end the process.
    tryRead(() => span.recordException(exception));
    const message = own?.code ?? tryRead(() => (error instanceof Error ? String(error.message) : undefined));
    span.setAttributes(errorType(error)).setStatus({ code: SpanStatusCode.ERROR, message: message ?? shown(error) });
  }
  span.end();
}
