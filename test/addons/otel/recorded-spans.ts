import { context, type Tracer, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { PrismaInstrumentation } from '@prisma/instrumentation';
import { afterAll } from 'vitest';

/** The spans of this process, in memory, with those of Prisma's own instrumentation, to the end of the suite. */
export class Spans {
  readonly #spans = new InMemorySpanExporter();
  readonly #tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] });
  readonly #prisma = new PrismaInstrumentation();

  constructor() {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(this.#tracers);
    this.#prisma.setTracerProvider(this.#tracers);
    this.#prisma.enable();
    afterAll(async () => {
      this.#prisma.disable();
      await this.#tracers.shutdown();
      for (const api of [context, trace]) api.disable();
    });
  }

  /** The trace in which `root` is. */
  trace(root: (span: ReadableSpan) => boolean): Tree {
    const spans = this.#spans.getFinishedSpans();
    const [one, ...more] = spans.filter(root);
    if (one === undefined || more.length > 0) throw new Error(`there are ${spans.filter(root).length} such spans`);
    const { traceId } = one.spanContext();
    return new Tree(
      one,
      spans.filter((span) => span.spanContext().traceId === traceId),
    );
  }
}

/** Makes spans that go there alone. */
export function tracerTo(ended: ReadableSpan[]): Tracer {
  const processor = {
    onStart() {},
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  return new BasicTracerProvider({ spanProcessors: [processor] }).getTracer('alone');
}

/** One trace, and a span of it. */
export class Tree {
  readonly root: ReadableSpan;
  readonly spans: readonly ReadableSpan[];

  constructor(root: ReadableSpan, spans: readonly ReadableSpan[]) {
    this.root = root;
    this.spans = spans;
  }

  children(parent: ReadableSpan): ReadableSpan[] {
    const { spanId } = parent.spanContext();
    return this.spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanId);
  }

  one(name: string): ReadableSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found[0] === undefined || found.length > 1) throw new Error(`there are ${found.length} spans named ${name}`);
    return found[0];
  }

  /** Whether one is inside of another, however deep. */
  isInside(span: ReadableSpan, outer: ReadableSpan): boolean {
    const parent = this.spans.find((each) => each.spanContext().spanId === span.parentSpanContext?.spanId);
    return parent !== undefined && (parent === outer || this.isInside(parent, outer));
  }
}
