import { diag, type Meter, metrics as meters, type Tracer, trace } from '@opentelemetry/api';
import { checkNames } from '../../base/checks.js';
import { OTHER } from './attributes.js';
import { recordMetrics } from './metrics.js';
import { recordSpans } from './spans.js';

const NAME = 'prisma-extension-fenced-lock';

export interface InstrumentOptions {
  /** Makes the spans. Default: one of the global tracer provider. `false`: no spans. */
  readonly tracer?: Tracer | false | undefined;
  /** Makes the instruments. Default: one of the global meter provider. `false`: no metrics. */
  readonly meter?: Meter | false | undefined;
  /**
   * The group of a key, which names the span and is an attribute of every metric: there must be few of them. Default: what
   * stands before the first `:`, and `_OTHER` for a key without one.
   */
  readonly group?: ((key: string) => string) | undefined;
  /** Whether spans have the whole keys, as `fenced_lock.keys`. Metrics never have them. Default: `false`. */
  readonly keyOnSpans?: boolean | undefined;
}

/**
 * Makes spans and metrics of the locks of this process, whichever client takes them: call it once, behind the start of
 * the OpenTelemetry SDK. Returns the function that ends it.
 */
export function instrumentFencedLock(options: InstrumentOptions = {}): () => void {
  checkNames('options', options, ['tracer', 'meter', 'group', 'keyOnSpans']);
  const group = checkedGroup(options.group ?? beforeColon);
  const ends: Array<() => void> = [];
  if (options.tracer !== false) {
    ends.push(...recordSpans(options.tracer ?? trace.getTracer(NAME), group, options.keyOnSpans ?? false));
  }
  if (options.meter !== false) ends.push(...recordMetrics(options.meter ?? meters.getMeter(NAME), group));
  return () => {
    for (const end of ends.splice(0)) end();
  };
}

function beforeColon(key: string): string {
  const end = key.indexOf(':');
  // A key without one may be an id: there would be as many time series as there are keys.
  return end > 0 ? key.slice(0, end) : OTHER;
}

/** A function of the application's must not decide the fate of a transaction. */
function checkedGroup(group: (key: string) => string): (key: string) => string {
  return (key) => {
    try {
      const name: unknown = group(key);
      return typeof name === 'string' ? name : OTHER;
    } catch (error) {
      diag.warn(`${NAME}: the function \`group\` threw: ${String(error)}`);
      return OTHER;
    }
  };
}
