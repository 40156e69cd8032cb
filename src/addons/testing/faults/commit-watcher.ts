import { asksForEncryption, isPostgres, type Message, MessageReader, strings } from './postgres-messages.js';

const COMMIT = /^\s*commit(\s+(work|transaction))?\s*;?\s*$/i;

/** Follows one connection and knows which bytes hold a COMMIT, and which the server's yes to it. Quiet if it is not Postgres. */
export class CommitWatcher {
  readonly #client = new MessageReader('client');
  readonly #server = new MessageReader('server');
  /** Prepared statements and portals whose text is COMMIT. */
  readonly #statements = new Set<string>();
  readonly #portals = new Set<string>();
  #postgres: boolean | undefined;

  /** To be called with all bytes to the server, in order. */
  hasCommit(data: Buffer): boolean {
    this.#postgres ??= isPostgres(data);
    if (!this.#postgres) return false;
    // Not some(): each message has to be looked at, because it may name a statement.
    return this.#client.read(data).filter((message) => this.#isCommit(message)).length > 0;
  }

  /** To be called with all bytes to the client, in order. A COMMIT that became a rollback does not count. */
  hasCommitReply(data: Buffer): boolean {
    if (!this.#postgres) return false;
    return this.#server.read(data).some(({ type, body }) => type === 'C' && strings(body, 1)[0] === 'COMMIT');
  }

  #isCommit(message: Message): boolean {
    if (asksForEncryption(message)) this.#server.skipByte();
    const [first = '', second = ''] = strings(message.body, 2);
    switch (message.type) {
      case 'Q':
        return COMMIT.test(first);
      case 'P':
        remember(this.#statements, first, COMMIT.test(second));
        return false;
      case 'B':
        remember(this.#portals, first, this.#statements.has(second));
        return false;
      case 'E':
        return this.#portals.has(first);
      default:
        return false;
    }
  }
}

function remember(names: Set<string>, name: string, isCommit: boolean): void {
  if (isCommit) names.add(name);
  else names.delete(name);
}
