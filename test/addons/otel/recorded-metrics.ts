import type { Meter } from '@opentelemetry/api';
import { type DataPoint, type Histogram, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';

/** Reads when it is asked. */
class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

/** The value of a metric, and the attributes that it is told apart by. */
interface Value {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value: number | Histogram;
}

/** What instruments have recorded, in memory, to the end of the suite. */
export class Metrics {
  readonly #reader = new AskedReader();
  readonly #meters = new MeterProvider({ readers: [this.#reader] });

  get meter(): Meter {
    return this.#meters.getMeter('test');
  }

  async values(name: string): Promise<readonly Value[]> {
    const found = (await this.#all()).find(({ descriptor }) => descriptor.name === name);
    return ((found?.dataPoints ?? []) as DataPoint<number | Histogram>[]).map(({ attributes, value }) => ({
      attributes,
      value,
    }));
  }

  /** The sum of a counter, or how often a histogram was recorded, of these attributes. */
  async sum(name: string, attributes: Readonly<Record<string, unknown>>): Promise<number> {
    const values = (await this.values(name)).filter((each) =>
      Object.entries(attributes).every(([key, value]) => each.attributes[key] === value),
    );
    return values.reduce((sum, { value }) => sum + (typeof value === 'number' ? value : value.count), 0);
  }

  /** The groups of all metrics. */
  async groups(): Promise<ReadonlySet<unknown>> {
    const points = (await this.#all()).flatMap(({ dataPoints }) => dataPoints as DataPoint<unknown>[]);
    return new Set(points.map(({ attributes }) => attributes['fenced_lock.group']));
  }

  async #all() {
    const { resourceMetrics } = await this.#reader.collect();
    return resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  }
}
