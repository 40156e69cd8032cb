/** A message of the Postgres protocol; the ones before the first type byte have the type ''. */
export interface Message {
  readonly type: string;
  readonly body: Buffer;
}

const SSL_REQUEST = 80877103;
const GSS_REQUEST = 80877104;

/** Cuts a stream of bytes into messages, wherever the network has cut it. */
export class MessageReader {
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
export function asksForEncryption({ type, body }: Message): boolean {
  return type === '' && [SSL_REQUEST, GSS_REQUEST].includes(body.readInt32BE(0));
}

/** Whether a client's first bytes are Postgres's: protocol version 3, or one of the requests numbered 1234. */
export function isPostgres(first: Buffer): boolean {
  return first.length >= 8 && [3, 1234].includes(first.readInt16BE(4));
}

/** The zero-terminated strings a message begins with. */
export function strings(body: Buffer, count: number): string[] {
  return body.toString('utf8').split('\0', count);
}
