import fc from 'fast-check';
import { Connection } from 'pg';
import { describe, expect, test } from 'vitest';
import { FLUSH, messagesOf, type Parsing, SYNC } from '../../src/connection/flight.js';
import type { Statement } from '../../src/database/database.js';
import { seed } from '../options/seed.js';

/** What pg itself sends by. */
interface Serializer {
  parse(query: { text: string; name: string }): void;
  bind(config: { statement: string; values: readonly (string | null)[] }): void;
  execute(config: object): void;
  close(config: { type: 'S'; name: string }): void;
  flush(): void;
  sync(): void;
}

/** The bytes that pg would write. */
function byPg(send: (connection: Serializer) => void): Buffer {
  const written: Buffer[] = [];
  const stream = { on: () => stream, writable: true, write: (data: Buffer) => written.push(Buffer.from(data)) };
  send(new Connection({ stream } as never) as unknown as Serializer);
  return Buffer.concat(written);
}

function byPgOf({ text, name = '', values }: Statement, parsing: Parsing): Buffer {
  const statement = parsing === 'unnamed' ? '' : name;
  return byPg((connection) => {
    if (parsing === 'named') connection.close({ type: 'S', name });
    if (parsing !== 'known') connection.parse({ text, name: statement });
    connection.bind({ statement, values });
    connection.execute({});
  });
}

/** The messages in it: the type of each and its content; of Bind what it says, which there are two ways to write. */
function messagesIn(bytes: Buffer): unknown[] {
  const messages: unknown[] = [];
  for (let at = 0; at < bytes.length; ) {
    const type = String.fromCharCode(bytes.readUInt8(at));
    const length = bytes.readInt32BE(at + 1);
    const content = bytes.subarray(at + 5, at + 1 + length);
    messages.push(type === 'B' ? bindOf(content) : { type, content: content.toString('hex') });
    at += 1 + length;
    if (at > bytes.length) throw new Error('a message ends behind the end of all');
  }
  return messages;
}

function bindOf(content: Buffer) {
  let at = 0;
  const text = () => {
    const from = at;
    at = content.indexOf(0, from) + 1;
    return content.toString('utf8', from, at - 1);
  };
  const take = (length: number) => {
    at += length;
    return content.subarray(at - length, at);
  };
  const int16 = () => take(2).readInt16BE();
  // None means that all of them are text, as 0 does of one.
  const formats = () => Array.from({ length: int16() }, int16).filter((format) => format !== 0);
  const value = () => {
    const length = take(4).readInt32BE();
    return length === -1 ? null : take(length).toString('hex');
  };
  const bind = {
    type: 'B',
    portal: text(),
    statement: text(),
    formats: formats(),
    values: Array.from({ length: int16() }, value),
    results: formats(),
  };
  if (at !== content.length) throw new Error('there is more in a Bind than it says');
  return bind;
}

describe('the messages of a flight', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 }).filter((one) => !one.includes('\0'));
  const statement = fc.record({
    text,
    name: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 60 }),
    values: fc.array(fc.option(fc.string({ unit: 'binary', maxLength: 200 })), { minLength: 1, maxLength: 12 }),
  });

  test.each(['unnamed', 'named', 'known'] as const)('%s say what those of pg would say', (parsing) => {
    fc.assert(
      fc.property(statement, (one) => {
        expect(messagesIn(messagesOf(one, parsing))).toEqual(messagesIn(byPgOf(one, parsing)));
      }),
      { seed, numRuns: 500 },
    );
  });

  test('of a statement without values are unnamed, however often it is sent', () => {
    const begin = { text: 'BEGIN ISOLATION LEVEL SERIALIZABLE', name: 'begin', values: [] };
    for (const parsing of ['named', 'known', 'unnamed'] as const) {
      expect(messagesIn(messagesOf(begin, parsing))).toEqual(messagesIn(byPgOf(begin, 'unnamed')));
    }
    const other = { text: 'COMMIT', values: [] };
    expect(messagesIn(messagesOf(other, 'unnamed'))).toEqual(messagesIn(byPgOf(other, 'unnamed')));
  });

  test('Flush and Sync are those of pg', () => {
    expect(FLUSH).toEqual(byPg((connection) => connection.flush()));
    expect(SYNC).toEqual(byPg((connection) => connection.sync()));
  });
});
