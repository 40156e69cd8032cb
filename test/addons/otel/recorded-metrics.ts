import type { Attributes, Meter } from '@opentelemetry/api';
import { type DataPoint, type Histogram, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';

/** Reads when it is asked. */
class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

/** What instruments have recorded, in memory, to the end of the suite. */
export class Metrics {
  readonly #reader = new AskedReader();
  readonly #meters = new MeterProvider({ readers: [this.#reader] });

  get meter(): Meter {
    return this.#meters.getMeter('test');
  }

  /** The sum of a counter, or how often a histogram was recorded, of these attributes. */
  async sum(name: string, attributes: Attributes): Promise<number> {
    const points = await this.#points(name, attributes);
    return points.reduce((sum, { value }) => sum + (typeof value === 'number' ? value : value.count), 0);
  }

  /** The sum of what a histogram has recorded. */
  async total(name: string, attributes: Attributes): Promise<number> {
    const points = await this.#points(name, attributes);
    return points.reduce((sum, { value }) => sum + ((value as Histogram).sum ?? 0), 0);
  }

  /** The groups of all metrics. */
  async groups(): Promise<ReadonlySet<unknown>> {
    return new Set((await this.#points()).map(({ attributes }) => attributes['fenced_lock.group']));
  }

  async #points(name?: string, wanted: Attributes = {}): Promise<DataPoint<number | Histogram>[]> {
    const { resourceMetrics } = await this.#reader.collect();
    return resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => name === undefined || descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints as DataPoint<number | Histogram>[])
      .filter(({ attributes }) => Object.entries(wanted).every(([key, value]) => attributes[key] === value));
  }
}
