/** Enough for an admission, and for SQL of some 680 characters; bytes. */
const FIRST_SIZE = 2_048;
/** UTF-8 needs at most three bytes for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3;
/** From here on, texts are measured and buffers do not double: bytes. */
const LARGE = 65_536;
/** More than the type and the length of a message, two zero bytes behind texts, and three numbers of 16 bits. */
const OVERHEAD = 16;
/** Types of messages, as bytes. */
const PARSE = 'P'.charCodeAt(0);
const BIND = 'B'.charCodeAt(0);
const CLOSE = 'C'.charCodeAt(0);
/** Bytes of a length. */
const LENGTH = 4;
/** In Close: of a prepared statement. */
const STATEMENT = 'S'.charCodeAt(0);
/** Describe of the unnamed portal. */
const DESCRIBE = Buffer.from('D\0\0\0\x06P\0');
/** Execute of the unnamed portal, without a row limit. */
const EXECUTE = Buffer.from('E\0\0\0\x09\0\0\0\0\0');
const FLUSH = Buffer.from('H\0\0\0\x04');
const SYNC = Buffer.from('S\0\0\0\x04');

/**
 * Messages of the extended query protocol, in one buffer: each write to a socket costs a system call, and wakes the
 * server. Statements and portals are unnamed unless a name is given; values and results are in text format. Numbers are
 * written byte by byte: `writeInt32BE` checks its arguments in five more calls, and an admission has forty numbers.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
export class Messages {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE);
  #at = 0;

  /** Parse. The server chooses the types of the parameters. */
  parse(name: string, sql: string): void {
    const length = this.#begin(PARSE, mostBytes(name) + mostBytes(sql));
    this.#text(name);
    this.#text(sql);
    this.#int16(0);
    this.#end(length);
  }

  bind(name: string, values: readonly (string | null)[]): void {
    let most = mostBytes(name);
    for (const value of values) most += LENGTH + (value === null ? 0 : mostBytes(value));
    const length = this.#begin(BIND, most);
    this.#text('');
    this.#text(name);
    this.#int16(0);
    this.#int16(values.length);
    for (const value of values) {
      if (value === null) this.#int32(this.#skip(LENGTH), -1);
      else this.#sized(value);
    }
    this.#int16(0);
    this.#end(length);
  }

  /** Describe of the unnamed portal: the names and types of its columns. */
  describe(): void {
    this.#copy(DESCRIBE);
  }

  execute(): void {
    this.#copy(EXECUTE);
  }

  /** Close of a prepared statement. Never fails. */
  close(name: string): void {
    const length = this.#begin(CLOSE, mostBytes(name));
    this.#bytes[this.#at++] = STATEMENT;
    this.#text(name);
    this.#end(length);
  }

  flush(): void {
    this.#copy(FLUSH);
  }

  sync(): void {
    this.#copy(SYNC);
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** @param most the bytes of its texts and values, at most. Returns where its length has to be written. */
  #begin(type: number, most: number): number {
    this.#reserve(OVERHEAD + most);
    this.#bytes[this.#at++] = type;
    return this.#skip(LENGTH);
  }

  /** The length of a message includes its own four bytes, and not the type. */
  #end(length: number): void {
    this.#int32(length, this.#at - length);
  }

  #skip(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }

  /** A text that ends with a zero byte. */
  #text(value: string): void {
    this.#write(value);
    this.#bytes[this.#at++] = 0;
  }

  /** A text after its length in bytes. */
  #sized(value: string): void {
    const length = this.#skip(LENGTH);
    this.#write(value);
    this.#int32(length, this.#at - length - LENGTH);
  }

  #write(value: string): void {
    if (value !== '') this.#at += this.#bytes.write(value, this.#at);
  }

  #copy(message: Buffer): void {
    this.#reserve(message.length);
    this.#bytes.set(message, this.#at);
    this.#at += message.length;
  }

  /** @param value less than 2^16; of a larger one the upper bits are lost. */
  #int16(value: number): void {
    this.#bytes[this.#at++] = value >> 8;
    this.#bytes[this.#at++] = value;
  }

  #int32(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value >> 24;
    bytes[at + 1] = value >> 16;
    bytes[at + 2] = value >> 8;
    bytes[at + 3] = value;
  }

  #reserve(size: number): void {
    if (this.#at + size <= this.#bytes.length) return;
    const needed = this.#at + size;
    const larger = Buffer.allocUnsafe(needed < LARGE ? 2 * needed : needed + FIRST_SIZE);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

/** What a text needs in UTF-8 at most, or exactly if it is long. */
function mostBytes(text: string): number {
  const most = text.length * BYTES_PER_UNIT;
  return most < LARGE ? most : Buffer.byteLength(text);
}
