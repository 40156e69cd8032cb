import fc from 'fast-check';
import { Connection, Query } from 'pg';
import { describe, expect, test, vi } from 'vitest';
import { FLUSH, Messages, SYNC } from '../../src/base/postgres-messages.js';
import { type Parsing, writeStatement } from '../../src/connection/flight.js';
import { workQueryClass } from '../../src/connection/work-query.js';
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

/** The bytes that this package writes. */
function written(write: (messages: Messages) => void): Buffer {
  const messages = new Messages();
  write(messages);
  return messages.bytes;
}

/** What is written to a connection of pg, write by write. */
function writesOf(send: (connection: Serializer) => void): Buffer[] {
  const writes: Buffer[] = [];
  const stream = { on: () => stream, writable: true, write: (data: Buffer) => writes.push(Buffer.from(data)) };
  send(new Connection({ stream } as never) as unknown as Serializer);
  return writes;
}

/** The bytes that pg would write. */
const byPg = (send: (connection: Serializer) => void) => Buffer.concat(writesOf(send));

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
  const int16 = () => take(2).readUInt16BE();
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
    values: fc.array(fc.option(fc.string({ unit: 'binary', maxLength: 200 })), { maxLength: 12 }),
  });

  test.each(['unnamed', 'named', 'known'] as const)('%s say what those of pg would say', (parsing) => {
    fc.assert(
      fc.property(statement, (one) => {
        const ours = written((messages) => writeStatement(messages, one, parsing));
        expect(messagesIn(ours)).toEqual(messagesIn(byPgOf(one, parsing)));
      }),
      { seed, numRuns: 500 },
    );
  });

  test('Flush and Sync are those of pg', () => {
    expect(written((messages) => messages.add(FLUSH))).toEqual(byPg((connection) => connection.flush()));
    expect(written((messages) => messages.add(SYNC))).toEqual(byPg((connection) => connection.sync()));
  });
});

interface Submittable {
  submit(connection: unknown): unknown;
}

describe('the messages of a statement of the work', () => {
  type Values = readonly (string | null)[];
  const types = { getTypeParser: () => String };
  const end = { answered: () => {}, failed: (error: unknown) => error };
  const WorkQuery = workQueryClass(Query as never);

  function writesOfWork(text: string, values: Values): Buffer[] {
    const query = new WorkQuery({ text, values, types }, end) as unknown as Submittable;
    return writesOf((connection) => query.submit(connection));
  }

  /** As pg itself sends it. */
  function byPgQuery(text: string, values: Values): Buffer {
    const query = new Query({ text, values: [...values], queryMode: 'extended' } as never) as unknown as Submittable;
    return byPg((connection) => query.submit(connection));
  }

  function expectSame(text: string, values: Values): void {
    const [ours, ...more] = writesOfWork(text, values);
    expect(more).toEqual([]);
    expect(messagesIn(ours as Buffer)).toEqual(messagesIn(byPgQuery(text, values)));
  }

  /** Far longer than the first buffer, too; with half a surrogate pair, which no UTF-8 has. */
  const text = fc
    .tuple(
      fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.constantFrom('x', 'ß', '€', '\u{1F512}', '\ud83d')),
      fc.oneof(fc.constant(1), fc.nat(1_200)),
    )
    .map(([part, times]) => part.replaceAll('\0', '').repeat(times));

  test('say what those of pg would say, in one write', () => {
    fc.assert(
      fc.property(text, fc.array(fc.option(text), { maxLength: 12 }), (sql, values) => expectSame(sql, values)),
      { seed, numRuns: 500 },
    );
  });

  test.each(['x', '€', '\u{1F512}'])('are whole at each length at which the buffer grows: %s', (character) => {
    for (let length = 1; length < 720; length++) {
      expectSame('', [character.repeat(length)]);
      expectSame(character.repeat(length), [null]);
    }
    for (let count = 1; count < 540; count++) expectSame('', Array<null>(count).fill(null));
  });

  test('have as many values as the protocol can count, and a value of megabytes', () => {
    const values = Array.from({ length: 65_535 }, (_, index) => (index % 3 === 0 ? null : String(index)));
    expectSame('SELECT 1', values);
    expectSame('SELECT 1', Array<null>(65_535).fill(null));
    expectSame('SELECT $1', ['€'.repeat(2_000_000)]);
  });
});

describe('a statement with many long values', () => {
  test('is written into a buffer that is made once, and not for each value', () => {
    const values = Array.from({ length: 2_000 }, () => 'x'.repeat(2_000));
    const made = vi.spyOn(Buffer, 'allocUnsafe');
    try {
      const bytes = written((messages) => messages.bind('', values));
      expect(bytes.length).toBeGreaterThan(4_000_000);
      expect(made.mock.calls.length).toBeLessThan(5);
    } finally {
      made.mockRestore();
    }
  });
});
