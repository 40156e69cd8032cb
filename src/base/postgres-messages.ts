/** Enough for an admission, and for SQL of some 670 characters; bytes. */
const FIRST_SIZE = 2_048;
/** UTF-8 needs at most three bytes for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3;
/** From here on, texts are measured and buffers do not double: bytes. */
const LARGE = 65_536;
/** More than what stands between two texts or values: a zero byte, two numbers of 16 bits, and how a message begins. */
const OVERHEAD = 16;
/** Types of messages, as bytes. */
const PARSE = 'P'.charCodeAt(0);
const BIND = 'B'.charCodeAt(0);
const CLOSE = 'C'.charCodeAt(0);
/** Bytes of a length. */
const LENGTH = 4;
/** In Close: of a prepared statement. */
const STATEMENT = 'S'.charCodeAt(0);
/** Describe of the unnamed portal: the names and types of its columns. */
export const DESCRIBE = Buffer.from('D\0\0\0\x06P\0');
/** Execute of the unnamed portal, without a row limit. */
export const EXECUTE = Buffer.from('E\0\0\0\x09\0\0\0\0\0');
export const FLUSH = Buffer.from('H\0\0\0\x04');
export const SYNC = Buffer.from('S\0\0\0\x04');

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
    const start = this.#begin(PARSE);
    this.#text(name);
    this.#text(sql);
    this.#int16(0);
    this.#end(start);
  }

  bind(name: string, values: readonly (string | null)[]): void {
    const start = this.#begin(BIND);
    // All at once: a buffer that grows by each of many values is copied each time.
    let most = 0;
    for (const value of values) most += LENGTH + (value === null ? 0 : mostBytes(value));
    this.#reserve(most);
    this.#text('');
    this.#text(name);
    this.#int16(0);
    this.#int16(values.length);
    for (const value of values) {
      const at = this.#at;
      this.#at += LENGTH;
      if (value !== null) this.#write(value);
      this.#int32(at, value === null ? -1 : this.#at - at - LENGTH);
    }
    this.#int16(0);
    this.#end(start);
  }

  /** Close of a prepared statement. Never fails. */
  close(name: string): void {
    const start = this.#begin(CLOSE);
    this.#bytes[this.#at++] = STATEMENT;
    this.#text(name);
    this.#end(start);
  }

  /** One that is always the same. */
  add(message: Buffer): void {
    this.#reserve(message.length);
    this.#bytes.set(message, this.#at);
    this.#at += message.length;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Returns where the length of the message has to be written. */
  #begin(type: number): number {
    this.#reserve(0);
    this.#bytes[this.#at] = type;
    this.#at += 1 + LENGTH;
    return this.#at - LENGTH;
  }

  /** The length of a message includes its own four bytes, and not the type. */
  #end(start: number): void {
    this.#int32(start, this.#at - start);
  }

  /** A text that ends with a zero byte. */
  #text(value: string): void {
    if (value !== '') this.#write(value);
    this.#bytes[this.#at++] = 0;
  }

  #write(value: string): void {
    this.#reserve(mostBytes(value));
    this.#at += this.#bytes.write(value, this.#at);
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

  /** Makes room for so many bytes, and for what stands behind them. */
  #reserve(size: number): void {
    const needed = this.#at + size + OVERHEAD;
    if (needed <= this.#bytes.length) return;
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
