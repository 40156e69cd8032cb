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

/** A message of the Postgres protocol; the ones before the first type byte have the type ''. */
interface Message {
  readonly type: string;
  readonly body: Buffer;
}

const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;

/** Cuts a stream of bytes into messages, wherever the network has cut it. */
class MessageReader {
  #rest: Buffer = Buffer.alloc(0);
  #startup: boolean;
  #bare = 0;

  /** Only clients begin with messages that have no type. */
  constructor(from: 'client' | 'server') {
    this.#startup = from === 'client';
  }

  /** The next byte is no message: an answer to a request for encryption is one bare letter. */
  skipByte(): void {
    this.#bare++;
  }

  read(data: Buffer): Message[] {
    this.#rest = Buffer.concat([this.#rest, data]);
    const messages: Message[] = [];
    for (let message = this.#next(); message !== undefined; message = this.#next()) messages.push(message);
    return messages;
  }

  #next(): Message | undefined {
    if (this.#bare > 0 && this.#rest.length > 0) {
      this.#bare--;
      this.#rest = this.#rest.subarray(1);
    }
    const typeBytes = this.#startup ? 0 : 1;
    if (this.#rest.length < typeBytes + 4) return undefined;
    const end = typeBytes + this.#rest.readInt32BE(typeBytes);
    if (this.#rest.length < end) return undefined;

    const message = {
      type: this.#rest.toString('latin1', 0, typeBytes),
      body: this.#rest.subarray(typeBytes + 4, end),
    };
    this.#rest = this.#rest.subarray(end);
    if (this.#startup) this.#startup = asksForEncryption(message);
    return message;
  }
}

/** The real startup message follows it. */
function asksForEncryption({ type, body }: Message): boolean {
  return type === '' && [SSL_REQUEST, GSS_REQUEST].includes(body.readInt32BE(0));
}

/** Whether a client's first bytes are Postgres's: protocol version 3, or one of the requests numbered 1234. */
function isPostgres(first: Buffer): boolean {
  return first.length >= 8 && [3, 1234].includes(first.readInt16BE(4));
}

/** The zero-terminated strings a message begins with. */
function strings(body: Buffer, count: number): string[] {
  return body.toString('utf8').split('\0', count);
}
