import type { Statement } from '../database/database.js';

// The messages of the extended query protocol for a flight, in one buffer: each write to a socket costs a system call.
// https://www.postgresql.org/docs/current/protocol-message-formats.html

/**
 * How a statement is sent. `unnamed`: parsed each time. `named`: parsed under its name, for later use. `known`: by the
 * name, without parsing.
 */
export type Parsing = 'unnamed' | 'named' | 'known';

export const FLUSH = message('H', Buffer.alloc(0));
export const SYNC = message('S', Buffer.alloc(0));

const NO_NUMBERS = int16(0);
const NONE = Buffer.alloc(0);
/** Executes the unnamed portal without a row limit. */
const EXECUTE = message('E', Buffer.concat([text(''), int32(0)]));

/** The messages of statements without values, which never change. */
const known = new Map<string, Buffer>();

/** Parse, Bind and Execute. Values and results are in text format. */
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
  // Parse fails if the name is in use, as it is after a lost answer. Close never fails.
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

/** Type, length (including its own four bytes), content. */
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
