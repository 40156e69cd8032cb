import { onceForEach } from '../base/once-for-each.js';
import { inOneWrite, type PgField, type PgResult, type QueryClass, type Wire } from './pg.js';

type Value = string | null;
type Parser = (value: string) => unknown;

/** A statement in the form in which Prisma's adapter sends nearly all of them. */
interface PlainConfig {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly types: { getTypeParser(type: number, format: 'text'): Parser };
}

/** A query object of pg for a statement of the work. */
interface WorkQuery {
  readonly answer: Promise<PgResult>;
}

/** The command, for INSERT an object id, and the number of rows. */
const TAG = /^([A-Za-z]+)(?: (\d+))?(?: (\d+))?/;

/**
 * Whether a statement can be sent as a `WorkQuery`. Anything else is left to pg: names, rows as objects, and values that
 * pg converts.
 */
export function isPlain(config: Readonly<Record<string, unknown>>): config is Record<string, unknown> & PlainConfig {
  const { values, types, name, rowMode } = config as Partial<PlainConfig> & Record<string, unknown>;
  return rowMode === 'array' && name === undefined && types !== undefined && values?.every(isPlainValue) === true;
}

function isPlainValue(value: unknown): boolean {
  return value == null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/**
 * A statement of the work, sent with the messages that pg would send, and with the same result. pg's own class copies the
 * configuration, and builds for each result an object that rows as arrays do not use: a tenth of what a statement costs Node.
 */
export const workQueryClass = onceForEach(
  (Query: QueryClass): (new (config: PlainConfig) => WorkQuery) =>
    class extends Query implements WorkQuery {
      readonly answer: Promise<PgResult>;
      /** Tracers of pg show it. */
      readonly values: readonly unknown[];
      readonly #types: PlainConfig['types'];
      #fields: readonly PgField[] = [];
      #parsers: Parser[] = [];
      #rows: unknown[][] = [];
      #tag = '';
      /** The error of a parser. The answer goes on, so it is thrown when that has ended. */
      #unreadable: unknown;

      constructor({ text, values, types }: PlainConfig) {
        super(text);
        this.values = values;
        this.#types = types;
        this.answer = new Promise((resolve, reject) => {
          this.callback = (error, result) => (error ? reject(error) : resolve(result as PgResult));
        });
      }

      /** Returns an error of what it was given: pg rejects this statement with it, and goes on with the next. */
      submit(wire: Wire): unknown {
        try {
          const values = this.values.map((value): Value => (value == null ? null : String(value)));
          inOneWrite(wire, (once) => {
            once.parse({ text: this.text, name: '' });
            once.bind({ statement: '', values });
            once.describe({ type: 'P', name: '' });
            once.execute({});
            once.sync();
          });
          return null;
        } catch (error) {
          return error;
        }
      }

      handleRowDescription({ fields }: { readonly fields: readonly PgField[] }): void {
        this.#fields = fields;
        this.#parsers = fields.map(({ dataTypeID }) => this.#types.getTypeParser(dataTypeID, 'text'));
      }

      handleDataRow({ fields }: { readonly fields: readonly Value[] }): void {
        try {
          this.#rows.push(fields.map((value, at) => (value === null ? null : this.#parsers[at]?.(value))));
        } catch (error) {
          this.#unreadable ??= error;
        }
      }

      handleCommandComplete({ text }: { readonly text: string }): void {
        this.#tag = text;
      }

      /** Behind an error, pg may call it, too: the promise has been rejected then. */
      handleReadyForQuery(): void {
        const [, command = null, first, second] = TAG.exec(this.#tag) ?? [];
        const rowCount = second ?? first;
        this.callback?.(this.#unreadable, {
          command,
          oid: second === undefined ? null : Number(first),
          rowCount: rowCount === undefined ? null : Number(rowCount),
          fields: this.#fields,
          rows: this.#rows as readonly object[] as PgResult['rows'],
        });
      }

      handleError(error: unknown): void {
        this.callback?.(error);
      }
    },
);
