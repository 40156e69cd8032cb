import type { Statement } from '../database/database.js';

// The messages of the extended query protocol that a flight is made of, in one buffer: each write to a socket is a call of
// the kernel. https://www.postgresql.org/docs/current/protocol-message-formats.html

/** How a statement is sent: parsed anew; parsed under its name, for the next time; by the name that the server knows. */
export type Parsing = 'unnamed' | 'named' | 'known';

export const FLUSH = message('H', Buffer.alloc(0));
export const SYNC = message('S', Buffer.alloc(0));

const NO_NUMBERS = int16(0);
const NONE = Buffer.alloc(0);
/** The unnamed portal, to its end. */
const EXECUTE = message('E', Buffer.concat([text(''), int32(0)]));

/** Those of a statement without values, which are always the same. */
const known = new Map<string, Buffer>();

/** Parse, Bind and Execute. Values are bound as text, and so are the results. */
export function messagesOf(statement: Statement, parsing: Parsing): Buffer {
  if (statement.values.length > 0) return encode(statement, parsing);
  let messages = known.get(statement.text);
  if (messages === undefined) {
    messages = encode(statement, 'unnamed');
    known.set(statement.text, messages);
  }
  return messages;
}

function encode({ text: sql, name = '', values }: Statement, parsing: Parsing): Buffer {
  const called = text(parsing === 'unnamed' ? '' : name);
  const parse = parsing === 'known' ? NONE : message('P', Buffer.concat([called, text(sql), NO_NUMBERS]));
  // Parse fails where the name is taken, as it is if an answer to an earlier one was lost. Close never fails.
  const close = parsing === 'named' ? message('C', Buffer.concat([Buffer.from('S'), called])) : NONE;
  const parts = [text(''), called, NO_NUMBERS, int16(values.length)];
  for (const value of values) {
    if (value === null) parts.push(int32(-1));
    else {
      const bytes = Buffer.from(value);
      parts.push(int32(bytes.length), bytes);
    }
  }
  parts.push(NO_NUMBERS);
  return Buffer.concat([close, parse, message('B', Buffer.concat(parts)), EXECUTE]);
}

/** Its type, its length with the length's own four bytes, its content. */
function message(type: string, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(content.length + 4), content]);
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function int16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
}
