import pg from 'pg';

/** pg's connection, as it is behind a client. */
interface Messages {
  readonly stream: { cork(): void; uncork(): void };
  parse(statement: { name: string; text: string; types: number[] }): void;
  bind(portal: { statement: string; values: string[] }): void;
  execute(portal: object): void;
  sync(): void;
  on(event: string, listener: (message: { fields: string[]; message: string }) => void): void;
  removeAllListeners(event: string): void;
}

export type Statement = readonly [text: string, ...values: string[]];

/** What pg's client does with messages, and a wire does by itself. */
const HEARD = ['readyForQuery', 'dataRow', 'commandComplete', 'errorMessage', 'parseComplete', 'bindComplete'];

/** A connection as bare as it can be: messages of the protocol, several statements in one flight, each prepared once. */
export class Wire {
  readonly #client: pg.Client;
  readonly #messages: Messages;
  readonly #prepared = new Set<string>();
  readonly #waiting: Array<(row: string[]) => void> = [];
  #row: string[] = [];

  private constructor(client: pg.Client) {
    this.#client = client;
    this.#messages = (client as unknown as { connection: Messages }).connection;
    for (const event of HEARD) this.#messages.removeAllListeners(event);
    this.#messages.on('dataRow', ({ fields }) => {
      this.#row = fields;
    });
    this.#messages.on('readyForQuery', () => this.#waiting.shift()?.(this.#row));
    // What is measured here does not fail: a listener that throws ends the run.
    this.#messages.on('errorMessage', ({ message }) => {
      throw new Error(message);
    });
  }

  static async open(url: string): Promise<Wire> {
    const client = new pg.Client(url);
    await client.connect();
    return new Wire(client);
  }

  /** All in one flight. Resolves to the last row that was answered. */
  send(...statements: readonly Statement[]): Promise<string[]> {
    const wire = this.#messages;
    wire.stream.cork();
    for (const [text, ...values] of statements) {
      if (!this.#prepared.has(text)) wire.parse({ name: nameOf(text), text, types: [] });
      this.#prepared.add(text);
      wire.bind({ statement: nameOf(text), values });
      wire.execute({});
    }
    wire.sync();
    wire.stream.uncork();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/** Postgres keeps 63 bytes of a name. */
function nameOf(text: string): string {
  return text.slice(0, 60);
}
