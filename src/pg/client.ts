import pg from 'pg';
import { openings } from './opening.js';
import { WithBegin } from './with-begin.js';

const NOTHING = { command: '', rowCount: null, oid: 0, fields: [], rows: [] };
const OF_BEGIN = /^SET TRANSACTION ISOLATION LEVEL /;
const ENDS = /^(COMMIT|ROLLBACK)$/;

type Sent = pg.QueryConfig & { submit?: unknown };
type Send = (query: string | Sent, values?: unknown[], callback?: unknown) => unknown;

/**
 * A client of pg that sends the BEGIN of a lock's transaction along with the admission: one round trip less for a lock
 * whose turn has come. Transactions that are no lock's are as ever.
 *
 * `new PrismaPg({ connectionString, Client: FencedClient })`
 */
export class FencedClient extends pg.Client {
  /** What the transaction begins with and has not been sent; empty where nothing is held back. */
  #held: string[] = [];

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const send = this.query.bind(this) as Send;
    this.query = ((...given: Parameters<Send>) => this.#pass(given, send)) as unknown as typeof this.query;
  }

  #pass(given: Parameters<Send>, send: Send): unknown {
    const [query, values] = given;
    const { text } = typeof query === 'string' ? { text: query } : query;
    if (this.#holds(text)) return Promise.resolve(NOTHING);
    if (this.#held.length === 0) return send(...given);
    const held = this.#held;
    this.#held = [];
    // Of a transaction that the server has never heard of.
    if (ENDS.test(text)) return Promise.resolve(NOTHING);
    // Whoever begins a transaction here, the adapter and ourselves, asks for promises.
    return new Promise((resolve, reject) => {
      const config = typeof query === 'string' ? { text, values: values ?? [] } : query;
      send(new WithBegin(held, config, (error, result) => (error ? reject(error) : resolve(result))) as never);
    });
  }

  #holds(text: string): boolean {
    if (text === 'BEGIN') {
      const opening = openings.getStore();
      if (!opening?.isOpen) return false;
      opening.line = { query: (statement, values) => this.query(statement, [...values]) };
      this.#held = [text];
      return true;
    }
    if (this.#held.length === 0 || !OF_BEGIN.test(text)) return false;
    this.#held.push(text);
    return true;
  }
}
