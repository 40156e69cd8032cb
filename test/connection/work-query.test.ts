import type { Socket } from 'node:net';
import pg from 'pg';
import oldPg from 'pg-8.16';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { PgPool } from '../../src/connection/pg.js';
import { PooledConnection } from '../../src/connection/pool.js';
import { isPlain, workQueryClass } from '../../src/connection/work-query.js';
import { eventually } from '../support/eventually.js';

interface Config {
  readonly text: string;
  readonly values: unknown[];
}

interface Result {
  readonly command: string | null;
  readonly rowCount: number | null;
  readonly oid: number | null;
  readonly rows: readonly unknown[];
  readonly fields: ReadonlyArray<{ readonly name: string; readonly dataTypeID: number }>;
}

const TIMESTAMP = 1114;
/** As Prisma's adapter: some types by a parser of its own, the rest by that of pg. */
const types = {
  getTypeParser: (oid: number, format: 'text' | 'binary'): ((value: string) => unknown) =>
    oid === TIMESTAMP ? (value) => `at ${value}` : (pg.types.getTypeParser(oid, format as 'text') as () => unknown),
};
const configOf = ({ text, values }: Config) => ({ text, values, rowMode: 'array' as const, types });

/** What Prisma's adapter reads of a result. */
const readOf = ({ command, rowCount, oid, rows, fields }: Result) => ({
  command,
  rowCount,
  oid,
  rows,
  fields: fields.map(({ name, dataTypeID }) => ({ name, dataTypeID })),
});

/** What Prisma's adapter, and this package, read of an error. */
function errorOf(error: unknown) {
  const { code, severity, message, detail, hint, position, table, column, constraint, where } =
    error as pg.DatabaseError;
  return { code, severity, message, detail, hint, position, table, column, constraint, where };
}

const ALL_TYPES = `SELECT 1::int2, 2::int4, 9007199254740993::int8, 1.5::float4, 'NaN'::float8, 1.10::numeric(9, 3), true,
  'text'::text, 'varchar'::varchar, 'ab'::char(3), '\\x00ff'::bytea, '2026-02-28'::date, '23:59:59.5'::time,
  '23:59:59+02'::timetz, '2026-02-28 12:00:00.123'::timestamp, '2026-02-28 12:00:00+00'::timestamptz,
  '1 day 2 hours'::interval, '{"a": [1, null]}'::json, '{"a": [1, null]}'::jsonb,
  '00000000-0000-4000-8000-000000000000'::uuid, '10.0.0.1'::inet, '10.0.0.0/8'::cidr, B'101'::bit(3), '12.5'::money,
  '(1,2)'::point, '<a/>'::xml, ARRAY[1, NULL, 3], ARRAY['a', NULL, '"'], '{}'::text[], 'pg_class'::regclass, 5::oid,
  'a'::name, '[1,5)'::int4range, NULL, NULL::text, NULL::int4, NULL::timestamp, '' AS empty, 'ß€🔒' AS "ß€🔒"`;

const STATEMENTS: ReadonlyArray<[text: string, values?: unknown[]]> = [
  [ALL_TYPES],
  ['SELECT 1 AS a, 2 AS a, 3 AS b, 4'],
  ['SELECT id, name FROM item ORDER BY id'],
  ['SELECT id, name FROM item WHERE false'],
  ['SELECT'],
  ['SELECT FROM generate_series(1, 3)'],
  ["SELECT g, repeat('x', g % 100) FROM generate_series(1, 5000) AS g"],
  ["SELECT repeat('€', 300000)"],
  ['VALUES (1, NULL), (2, NULL)'],
  ['WITH one AS (SELECT 1 AS a) SELECT a FROM one'],
  ["WITH more AS (INSERT INTO item VALUES (3, 'c') RETURNING id) SELECT id FROM more"],
  ["INSERT INTO item VALUES (3, 'c'), (4, NULL) RETURNING id, name"],
  ["INSERT INTO item VALUES (3, 'c'), (4, NULL)"],
  ["INSERT INTO item VALUES (1, 'again') ON CONFLICT DO NOTHING"],
  ["INSERT INTO item VALUES (1, 'again') ON CONFLICT DO NOTHING RETURNING id"],
  ["UPDATE item SET name = 'z'"],
  ["UPDATE item SET name = 'z' WHERE id = 2 RETURNING *"],
  ["UPDATE item SET name = 'z' WHERE false"],
  ['DELETE FROM item'],
  ['DELETE FROM item WHERE id = 1 RETURNING id'],
  [
    'MERGE INTO item USING (VALUES (1), (3)) AS new (id) ON item.id = new.id WHEN NOT MATCHED THEN INSERT VALUES (new.id)',
  ],
  ['CREATE TABLE other (id int)'],
  ['CREATE TABLE other AS SELECT id FROM item'],
  ['CREATE INDEX ON item (name)'],
  ['ALTER TABLE item ADD COLUMN more int'],
  ['DROP TABLE item'],
  ['TRUNCATE item'],
  ["SET LOCAL application_name = 'work'"],
  ['SHOW server_encoding'],
  ['LOCK TABLE item'],
  ['SAVEPOINT here'],
  ['DO $$ BEGIN END $$'],
  ['EXPLAIN (COSTS false) SELECT 1'],
  ['DECLARE of_items CURSOR FOR SELECT id FROM item'],
  ['NOTIFY nobody'],
  ['COPY (SELECT id FROM item ORDER BY id) TO STDOUT'],
  [''],
  [' ;'],
  ['-- nothing'],
  [
    'SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text',
    ['text', 12.5, true, false, 9_007_199_254_740_993n, null, undefined],
  ],
  ['SELECT $1::int, $2::float8, $3::bool, $4::int8, $5::numeric', [7, Number.NaN, true, -1n, '1.10']],
  ['SELECT $1::text, $2::text, $3::text', ['', 'ß€🔒', 'it\'s \\ "quoted" {} $1']],
  ['SELECT $1::text, $2::text, $3::text', [-0, 1e21, Number.POSITIVE_INFINITY]],
  ['SELECT length($1::text)', ['€'.repeat(300_000)]],
  ['SELECT $1::text AS hole', new Array<unknown>(1)],
  ['UPDATE item SET name = $1 WHERE id = $2 RETURNING name', ['bound', 1]],
  ['INSERT INTO item (id, name) VALUES ($1, $2)', ['3', null]],
];

const FAILING: ReadonlyArray<[code: string, text: string, values?: unknown[]]> = [
  ['22012', 'SELECT 1 / 0'],
  ['22012', 'SELECT 1 / (500 - g) FROM generate_series(1, 1000) AS g'],
  ['42601', 'SELEC 1'],
  ['42601', 'SELECT 1; SELECT 2'],
  ['42601', 'SELECT 1; COMMIT'],
  ['42703', 'SELECT nothing FROM item'],
  ['42P01', 'SELECT 1 FROM nowhere'],
  ['23505', "INSERT INTO item VALUES (1, 'again')"],
  ['23502', "INSERT INTO item VALUES (NULL, 'nobody')"],
  ['22P02', 'SELECT $1::int', ['one']],
  ['22021', 'SELECT $1::text', ['a\0b']],
  ['42P18', 'SELECT $1 IS NULL', [null]],
  ['08P01', 'SELECT $1::int, $2::int', [1]],
  ['08P01', 'SELECT $1::int', []],
  ['08P01', 'SELECT 1\0; SELECT 2'],
  ['P0001', "DO $$ BEGIN RAISE 'no sale' USING DETAIL = 'sold out', HINT = 'come back', COLUMN = 'a'; END $$"],
];

/** Told of the end of one statement: how, and when. */
function noting() {
  const events: string[] = [];
  const end = {
    answered: () => void events.push('answered'),
    failed: (error: unknown) => {
      events.push('failed');
      return error;
    },
  };
  /** Behind the end of the statement and everything that follows on it. */
  const settled = async (result: Promise<unknown>): Promise<string[]> => {
    await result.then(
      () => events.push('resolved'),
      () => events.push('rejected'),
    );
    return events;
  };
  return { end, settled };
}

describe.each([
  ['pg', pg, {}],
  ['pg in pipeline mode', pg, { pipeline: true }],
  ['the oldest pg that the adapter of Prisma takes', oldPg, {}],
])('a statement of the work, on a connection of %s,', (_, { Client, Pool }, options) => {
  const config = { connectionString: inject('postgres').admin, max: 1, ...options };
  let pool: pg.Pool;
  let client: pg.PoolClient;

  beforeAll(async () => {
    pool = new Pool(config);
    client = await pool.connect();
    await client.query('CREATE TEMP TABLE item (id int PRIMARY KEY, name text)');
    await client.query("INSERT INTO item VALUES (1, 'a'), (2, NULL)");
  });
  afterAll(async () => {
    client.release();
    await pool.end();
  });

  /** A connection that only one test has, and that may be broken afterwards. */
  async function ownClient(more: pg.PoolConfig = {}) {
    const ownPool = new Pool({ ...config, ...more });
    const own = await ownPool.connect();
    own.on('error', () => {});
    onTestFinished(async () => {
      own.release(true);
      await ownPool.end();
    });
    return own;
  }

  const send = (on: pg.ClientBase, one: Config, end = noting().end, parsers: unknown = types): Promise<Result> => {
    const WorkQuery = workQueryClass((pool as unknown as PgPool).Client.Query);
    const query = new WorkQuery({ ...configOf(one), types: parsers as never }, end);
    on.query(query as never, (() => {}) as never);
    return query.result as Promise<Result>;
  };
  const sendByPg = (on: pg.ClientBase, one: Config, parsers: unknown = types): Promise<Result> =>
    on.query({ ...configOf(one), types: parsers, queryMode: 'extended' } as never) as unknown as Promise<Result>;

  /** In a transaction of its own, of which nothing stays. */
  async function undone<T>(run: () => Promise<T>): Promise<T> {
    await client.query('BEGIN');
    try {
      return await run();
    } finally {
      await client.query('ROLLBACK');
    }
  }

  const reasonOf = (sent: Promise<unknown>): Promise<unknown> =>
    sent.then(
      () => expect.fail('the statement did not fail'),
      (error: unknown) => error,
    );

  async function expectUsable(on: pg.ClientBase = client): Promise<void> {
    expect((await send(on, { text: 'SELECT $1::int', values: [12] })).rows).toEqual([[12]]);
    expect((await on.query('SELECT 13 AS a')).rows).toEqual([{ a: 13 }]);
  }

  test.each(STATEMENTS)('has the result that pg has for it: %s', async (text, values = []) => {
    const [ours, theirs] = [
      await undone(() => send(client, { text, values })),
      await undone(() => sendByPg(client, { text, values })),
    ];
    expect(readOf(ours)).toEqual(readOf(theirs));
  });

  test.each(FAILING)('fails with the error that pg has for it: %s, %j', async (code, text, values = []) => {
    const [ours, theirs] = [
      await undone(() => reasonOf(send(client, { text, values }))),
      await undone(() => reasonOf(sendByPg(client, { text, values }))),
    ];
    expect(errorOf(ours)).toEqual(errorOf(theirs));
    expect(ours).toMatchObject({ code });
    await expectUsable();
  });

  test('of which a parser throws fails with that error, once the rest of its rows is there', async () => {
    let calls = 0;
    const boom = new Error('no such number');
    const parsers = {
      getTypeParser: () => () => {
        calls++;
        throw boom;
      },
    };
    const { end, settled } = noting();
    const one = { text: 'SELECT g FROM generate_series(1, 1000) AS g', values: [] };
    const sent = send(client, one, end, parsers);
    await expect(sent).rejects.toBe(boom);
    expect(await settled(sent)).toEqual(['failed', 'rejected']);
    expect(calls).toBe(1);
    await expect(sendByPg(client, one, parsers)).rejects.toBe(boom);
    await expectUsable();
  });

  test('that copies from the client is refused, which nobody waits for', async () => {
    for (const by of [send, sendByPg]) {
      const own = await ownClient();
      await own.query('CREATE TEMP TABLE copied (id int)');
      const sent = by(own, { text: 'COPY copied FROM STDIN', values: [] });
      await expect(sent).rejects.toMatchObject({ code: '57014' });
    }
  });

  test('tells its end once, before its caller', async () => {
    for (const [text, events] of [
      ['SELECT 1', ['answered', 'resolved']],
      ['', ['answered', 'resolved']],
      ['SELECT 1 / 0', ['failed', 'rejected']],
      ['SELECT 1; SELECT 2', ['failed', 'rejected']],
    ] as const) {
      const { end, settled } = noting();
      expect(await settled(send(client, { text, values: [] }, end))).toEqual(events);
      await expectUsable();
      expect(await settled(Promise.resolve())).toEqual([...events, 'resolved']);
    }
  });

  test('fails with the error that its end makes of it', async () => {
    const named = new Error('named');
    const seen: unknown[] = [];
    const failed = (error: unknown) => {
      seen.push(error);
      return named;
    };
    const sent = send(client, { text: 'SELECT 1 / 0', values: [] }, { ...noting().end, failed });
    await expect(sent).rejects.toBe(named);
    expect(seen).toEqual([expect.objectContaining({ code: '22012' })]);
  });

  test('is answered when the status of the transaction behind it is known', async () => {
    const own = await ownClient();
    const line = new PooledConnection(own as never, pool as unknown as PgPool);
    const statuses: unknown[] = [];
    const end = { ...noting().end, answered: () => void statuses.push(line.status) };
    for (const text of ['BEGIN', 'SELECT 1', 'COMMIT']) await line.sendWork(configOf({ text, values: [] }), end);
    expect(statuses).toEqual(['T', 'T', 'I']);
  });

  test('is answered in its turn, if several are sent at once, and one of them fails', async () => {
    const texts = ['SELECT 1', 'SELECT 2 / 0', '', 'SELECT 4; SELECT 5', 'SELECT 6'];
    const ends = texts.map(noting);
    const sent = texts.map((text, index) => send(client, { text, values: [] }, ends[index]?.end));
    const settled = await Promise.allSettled(sent);
    const found = settled.map((one) =>
      one.status === 'fulfilled' ? one.value.rows : (one.reason as { code: string }).code,
    );
    expect(found).toEqual([[[1]], '22012', [], '42601', [[6]]]);
    await expectUsable();
  });

  /** A session that holds a lock, behind which a statement of a test waits. */
  async function blocker(id: number) {
    const session = new pg.Client(inject('postgres').admin);
    await session.connect();
    onTestFinished(() => session.end());
    await session.query('SELECT pg_advisory_lock($1)', [id]);
    const waits = { text: 'SELECT pg_advisory_lock($1)::text', values: [id] };
    const waiting = () =>
      eventually('it waits', async () => {
        const sql = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted";
        const { rows } = await session.query<{ pid: number }>(sql, [id]);
        return rows[0]?.pid;
      });
    return { session, waits, waiting, release: () => session.query('SELECT pg_advisory_unlock($1)', [id]) };
  }

  test('fails if its session is ended while it runs, as do those behind it', async () => {
    const own = await ownClient();
    const { session, waits, waiting } = await blocker(1_160_001);
    const [first, second] = [noting(), noting()];
    const running = send(own, waits, first.end);
    const behind = send(own, { text: 'SELECT 1', values: [] }, second.end);
    const [why, whyBehind] = [reasonOf(running), reasonOf(behind)];
    await session.query('SELECT pg_terminate_backend($1)', [await waiting()]);
    expect(await why).toMatchObject({ code: '57P01' });
    expect(await whyBehind).toBeInstanceOf(Error);
    expect(await first.settled(running)).toEqual(['failed', 'rejected']);
    expect(await second.settled(behind)).toEqual(['failed', 'rejected']);
  });

  test('fails if its connection breaks while it runs, and if it is sent afterwards', async () => {
    const own = await ownClient();
    const { waits, waiting } = await blocker(1_160_002);
    const [first, second] = [noting(), noting()];
    const running = send(own, waits, first.end);
    const why = reasonOf(running);
    await waiting();
    (own as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    expect(await why).toMatchObject({ message: expect.stringContaining('terminated') });
    const afterwards = send(own, { text: 'SELECT 1', values: [] }, second.end);
    await expect(afterwards).rejects.toThrow('not queryable');
    expect(await first.settled(running)).toEqual(['failed', 'rejected']);
    expect(await second.settled(afterwards)).toEqual(['failed', 'rejected']);
  });

  test('fails on a client that was ended', async () => {
    const own = new Client(config);
    await own.connect();
    await own.end();
    const { end, settled } = noting();
    const sent = send(own, { text: 'SELECT 1', values: [] }, end);
    await expect(sent).rejects.toThrow('not queryable');
    expect(await settled(sent)).toEqual(['failed', 'rejected']);
  });

  test('that pg has given up, by its query_timeout, is not told of what comes later: the answer, or the end', async () => {
    const own = await ownClient({ query_timeout: 100 });
    const { waits, waiting, release } = await blocker(1_160_003);
    const { end, settled } = noting();
    const sent = send(own, waits, end);
    const why = reasonOf(sent);
    await waiting();
    expect(await why).toMatchObject({ message: 'Query read timeout' });
    await release();
    // In pipeline mode, pg closes the connection.
    await eventually('the answer or the end is there', () =>
      send(own, { text: 'SELECT 1', values: [] }).then(
        () => true,
        (error: Error) => error.message.includes('not queryable'),
      ),
    );
    expect(await settled(sent)).toEqual(['failed', 'rejected']);
  });

  test('shows its text and values to who traces pg, and its end to the callback', async () => {
    const seen: unknown[] = [];
    const WorkQuery = workQueryClass((pool as unknown as PgPool).Client.Query);
    for (const text of ['SELECT $1::int', 'SELECT 1 / $1::int']) {
      const query = new WorkQuery(configOf({ text, values: [0] }), noting().end);
      client.query(query as never, ((error?: { code: string }) => seen.push(error?.code)) as never);
      expect(query).toMatchObject({ text, values: [0] });
      await query.result.catch(() => {});
    }
    expect(seen).toEqual([undefined, '22012']);
  });

  test('fails if a tool that watches statements refuses it, and does not send it', async () => {
    const own = await ownClient();
    const query = own.query.bind(own) as (...given: unknown[]) => unknown;
    const refusal = new Error('refused');
    own.query = ((statement: object, callback: (error?: Error) => void) => {
      // As a tracer wraps it.
      if ('submit' in statement) callback(refusal);
      else return query(statement, callback);
      return statement;
    }) as never;
    const line = new PooledConnection(own as never, pool as unknown as PgPool);
    const { end, settled } = noting();
    const sent = line.sendWork(configOf({ text: 'SELECT 1', values: [] }), end);
    await expect(sent).rejects.toBe(refusal);
    expect(await settled(sent)).toEqual(['failed', 'rejected']);
  });

  test('that is not plain has the same result by pg itself, and tells its end, too', async () => {
    const own = await ownClient();
    const line = new PooledConnection(own as never, pool as unknown as PgPool);
    const day = new Date('2026-02-28T12:00:00Z');
    const texts: [string, unknown, unknown][] = [
      ['SELECT $1::timestamptz', day, day],
      ['SELECT $1::bytea', Buffer.from([0, 255]), Buffer.from([0, 255])],
      ['SELECT $1::int[]', [1, null], [1, null]],
      ['SELECT $1::jsonb', { a: null }, { a: null }],
    ];
    for (const [text, value, read] of texts) {
      const { end, settled } = noting();
      const sent = line.sendWork(configOf({ text, values: [value] }), end);
      expect((await sent).rows).toEqual([[read]]);
      expect(await settled(sent)).toEqual(['answered', 'resolved']);
    }
    const { end, settled } = noting();
    const failing = line.sendWork(configOf({ text: 'SELECT $1::int', values: [day] }), end);
    await expect(failing).rejects.toMatchObject({ code: '22P02' });
    expect(await settled(failing)).toEqual(['failed', 'rejected']);
  });

  test('of a client that asks for binary results is left to pg', async () => {
    const own = await ownClient({ binary: true } as never);
    const line = new PooledConnection(own as never, pool as unknown as PgPool);
    const formats: unknown[] = [];
    const parsers = {
      getTypeParser: (oid: number, format: 'text' | 'binary') => {
        formats.push(format);
        return types.getTypeParser(oid, format);
      },
    };
    const one = { text: "SELECT 7::int, 'a'::text", values: [] };
    const theirs = await sendByPg(own, one);
    const ours = await line.sendWork({ ...configOf(one), types: parsers }, noting().end);
    expect(ours.rows).toEqual(theirs.rows);
    expect(formats).toEqual(['binary', 'binary']);
  });
});

describe('a statement is plain', () => {
  const plain = configOf({ text: 'SELECT 1', values: [] });

  test.each<[string, unknown[]]>([
    ['no values', []],
    ['all that are sent as their text', ['text', '', 1, Number.NaN, 1n, true, false, null, undefined]],
    ['as many as the protocol can count', Array.from({ length: 65_535 }, String)],
  ])('with %s', (_, values) => {
    expect(isPlain({ ...plain, values })).toBe(true);
    // As Prisma's adapter has it.
    expect(isPlain({ ...plain, values, name: undefined })).toBe(true);
  });

  test.each<[string, unknown]>([
    ['a Date', new Date()],
    ['a Buffer', Buffer.from('a')],
    ['a Uint8Array', new Uint8Array(2)],
    ['an array', [1, 2]],
    ['an object', { a: 1 }],
    ['an object with a text of its own', { toPostgres: () => 'a' }],
    ['a boxed text', Object('a')],
    ['a function', () => 'a'],
    ['a symbol', Symbol('a')],
  ])('but not with %s among its values', (_, value) => {
    expect(isPlain({ ...plain, values: ['a', value, 1] })).toBe(false);
  });

  test.each<[string, Record<string, unknown>]>([
    ['a name', { name: 'one' }],
    ['rows as objects', { rowMode: undefined }],
    ['rows as something else', { rowMode: 'object' }],
    ['more values than the protocol can count', { values: Array.from({ length: 65_536 }, String) }],
    ['no values at all', { values: undefined }],
    ['values that are no array', { values: 'abc' }],
    ['no parsers', { types: undefined }],
    ['no text', { text: undefined }],
  ])('but not with %s', (_, more) => {
    expect(isPlain({ ...plain, ...more })).toBe(false);
  });
});
