/** Enough for an admission, and for SQL of some 680 characters; bytes. */
const FIRST_SIZE = 2_048;
/** UTF-8 needs at most three bytes for one unit of a JavaScript string. */
const BYTES_PER_UNIT = 3;
/** From here on, texts are measured and buffers do not double: bytes. */
const LARGE = 65_536;

/**
 * Messages of the extended query protocol, in one buffer: each write to a socket costs a system call, and wakes the
 * server. Statements and portals are unnamed unless a name is given; values and results are in text format.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
export class Messages {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE);
  #at = 0;
  /** Where the length of the present message is. */
  #length = 0;

  /** Parse. The server chooses the types of the parameters. */
  parse(name: string, sql: string): void {
    this.#begin('P');
    this.#text(name);
    this.#text(sql);
    this.#int16(0);
    this.#end();
  }

  bind(name: string, values: readonly (string | null)[]): void {
    this.#begin('B');
    this.#text('');
    this.#text(name);
    this.#int16(0);
    this.#int16(values.length);
    for (const value of values) {
      if (value === null) this.#int32(-1);
      else this.#sized(value);
    }
    this.#int16(0);
    this.#end();
  }

  /** Describe of the unnamed portal: the names and types of its columns. */
  describe(): void {
    this.#begin('D');
    this.#byte('P');
    this.#text('');
    this.#end();
  }

  /** Execute, without a row limit. */
  execute(): void {
    this.#begin('E');
    this.#text('');
    this.#int32(0);
    this.#end();
  }

  /** Close of a prepared statement. Never fails. */
  close(name: string): void {
    this.#begin('C');
    this.#byte('S');
    this.#text(name);
    this.#end();
  }

  flush(): void {
    this.#begin('H');
    this.#end();
  }

  sync(): void {
    this.#begin('S');
    this.#end();
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  #begin(type: string): void {
    this.#byte(type);
    this.#length = this.#at;
    this.#int32(0);
  }

  /** The length of a message includes its own four bytes, and not the type. */
  #end(): void {
    this.#bytes.writeInt32BE(this.#at - this.#length, this.#length);
  }

  /** A text that ends with a zero byte. */
  #text(value: string): void {
    this.#write(value);
    this.#byte('\0');
  }

  /** A text after its length in bytes. */
  #sized(value: string): void {
    this.#int32(0);
    const from = this.#at;
    this.#write(value);
    this.#bytes.writeInt32BE(this.#at - from, from - 4);
  }

  #write(value: string): void {
    if (value === '') return;
    const most = value.length * BYTES_PER_UNIT;
    this.#reserve(most < LARGE ? most : Buffer.byteLength(value));
    this.#at += this.#bytes.write(value, this.#at);
  }

  #byte(value: string): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value.charCodeAt(0);
  }

  #int16(value: number): void {
    this.#reserve(2);
    this.#at = this.#bytes.writeUInt16BE(value, this.#at);
  }

  #int32(value: number): void {
    this.#reserve(4);
    this.#at = this.#bytes.writeInt32BE(value, this.#at);
  }

  #reserve(size: number): void {
    if (this.#at + size <= this.#bytes.length) return;
    const needed = this.#at + size;
    const larger = Buffer.allocUnsafe(needed < LARGE ? 2 * needed : needed + FIRST_SIZE);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
