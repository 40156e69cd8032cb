import { onceForEach } from '../base/once-for-each.js';
import { DESCRIBE, EXECUTE, Messages, SYNC } from '../base/postgres-messages.js';
import type { PgResult, QueryClass, Wire } from './pg.js';

type Value = string | null;
type Parser = (value: string) => unknown;

/** A statement in the form in which Prisma's adapter sends nearly all of them. */
interface PlainConfig {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly types: { getTypeParser(type: number, format: 'text'): Parser };
}

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

interface WorkResult extends PgResult {
  readonly oid: number | null;
  readonly rowCount: number | null;
  readonly fields: readonly Field[];
}

/** A query object of pg for a statement of the work. */
interface WorkQuery {
  readonly result: Promise<PgResult>;
  /** To be given to `client.query` as its callback. */
  readonly ended: (error?: unknown) => void;
}

/** Learns that a statement has ended, before its sender does. */
export interface StatementEnd {
  answered(result: PgResult): void;
  /** Returns the error that the sender gets. */
  failed(error: unknown): unknown;
}

export type WorkQueryClass = new (config: PlainConfig, end: StatementEnd) => WorkQuery;

/** Bind has two bytes for the number of values. */
const MOST_VALUES = 0xffff;
/** What follows the values of each statement. */
const REST = Buffer.concat([DESCRIBE, EXECUTE, SYNC]);
/** The command, for INSERT an object id, and the number of rows. */
const TAG = /^([A-Za-z]+)(?: (\d+))?(?: (\d+))?/;

/**
 * Whether a statement can be sent as a `WorkQuery`. Anything else is left to pg: names, rows as objects, and values that
 * pg converts.
 */
export function isPlain(config: Readonly<Record<string, unknown>>): config is Record<string, unknown> & PlainConfig {
  const { text, values, types, name, rowMode } = config as Partial<PlainConfig> & Record<string, unknown>;
  return (
    rowMode === 'array' &&
    name === undefined &&
    typeof text === 'string' &&
    typeof types?.getTypeParser === 'function' &&
    Array.isArray(values) &&
    values.length <= MOST_VALUES &&
    values.every(isPlainValue)
  );
}

function isPlainValue(value: unknown): boolean {
  return value == null || (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol');
}

/**
 * A statement of the work, sent with the messages that pg would send, and with the same result. pg's own class copies the
 * configuration, writes each message by itself, and builds for each result an object that rows as arrays do not use.
 * Together these are a tenth of what a statement costs Node.
 */
export const workQueryClass = onceForEach((Query: QueryClass): WorkQueryClass => {
  return class extends Query implements WorkQuery {
    readonly result: Promise<PgResult>;
    /** A tool that watches statements may refuse one: it calls the callback with its error, and sends nothing. */
    readonly ended = (error?: unknown): void => {
      if (error) this.handleError(error);
    };
    /** Tracers of pg show it. */
    readonly values: readonly unknown[];
    readonly #types: PlainConfig['types'];
    readonly #end: StatementEnd;
    #resolve!: (result: WorkResult) => void;
    #reject!: (error: unknown) => void;
    #fields: readonly Field[] = [];
    #parsers: Parser[] = [];
    #rows: unknown[][] = [];
    #tag = '';
    /** The error of a parser. The answer goes on, so it is thrown when that has ended. */
    #unreadable: { readonly error: unknown } | undefined;
    #isOver = false;

    constructor({ text, values, types }: PlainConfig, end: StatementEnd) {
      super(text);
      this.values = values;
      this.#types = types;
      this.#end = end;
      this.result = new Promise((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
      });
    }

    /** Returns an error of what it was given: pg rejects this statement with it, and goes on with the next. */
    submit({ stream }: Wire): unknown {
      try {
        const texts: Value[] = [];
        for (const value of this.values) texts.push(value == null ? null : String(value));
        const messages = new Messages();
        messages.parse('', this.text);
        messages.bind('', texts);
        messages.add(REST);
        // A closed stream is reported by pg's error event.
        if (stream.writable) stream.write(messages.bytes);
        return null;
      } catch (error) {
        return error;
      }
    }

    handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
      this.#fields = fields;
      this.#parsers = fields.map(({ dataTypeID }) => this.#types.getTypeParser(dataTypeID, 'text'));
    }

    handleDataRow({ fields }: { readonly fields: readonly Value[] }): void {
      if (this.#unreadable !== undefined) return;
      try {
        this.#rows.push(fields.map((value, index) => (value === null ? null : this.#parsers[index]?.(value))));
      } catch (error) {
        this.#unreadable = { error };
      }
    }

    handleCommandComplete({ text }: { readonly text: string }): void {
      this.#tag = text;
    }

    /** pg may call it after `handleError`. */
    handleReadyForQuery(): void {
      if (this.#isOver) return;
      if (this.#unreadable !== undefined) {
        this.handleError(this.#unreadable.error);
        return;
      }
      this.#isOver = true;
      const [, command = null, first, second] = TAG.exec(this.#tag) ?? [];
      const result = {
        command,
        oid: second === undefined ? null : Number(first),
        rowCount: numberOf(second ?? first),
        fields: this.#fields,
        rows: this.#rows as readonly object[] as PgResult['rows'],
      };
      this.#end.answered(result);
      this.#resolve(result);
      this.callback?.(null, result);
    }

    handleError(error: unknown): void {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#reject(this.#end.failed(error));
      this.callback?.(error);
    }
  };
});

function numberOf(digits: string | undefined): number | null {
  return digits === undefined ? null : Number(digits);
}
