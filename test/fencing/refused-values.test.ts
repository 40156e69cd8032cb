import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { StaleTokenError } from '../../src/base/errors.js';
import { AWAIT_ROW } from '../../src/database/sql.js';
import { Fencing } from '../../src/fencing/fencing.js';
import { fromGuard } from '../../src/fencing/refusal.js';
import type { PrismaInternals } from '../../src/prisma/internals.js';
import { modelsOf } from '../../src/prisma/models.js';
import { FenceWorld, FRESHER, guardSql } from '../support/fence-world.js';

const COLUMNS = {
  serial: ['BigInt', 'bigint'],
  at: ['DateTime', 'timestamp'],
  zoned: ['DateTime', 'timestamptz'],
  day: ['DateTime', 'date'],
  mark: ['Bytes', 'bytea'],
  code: ['String', 'text'],
  share: ['Decimal', 'numeric'],
} as const;
type Column = keyof typeof COLUMNS;
const NAMES = Object.keys(COLUMNS) as Column[];

/** The model, whose fields have other names than its columns. */
const MODELS = modelsOf({
  _engineConfig: {},
  _runtimeDataModel: {
    models: {
      Entry: {
        dbName: 'entry',
        schema: 'people',
        fields: [
          ...NAMES.map((name) => ({ name: `${name}Field`, kind: 'scalar', type: COLUMNS[name][0], dbName: name })),
          { name: 'fence', kind: 'scalar', type: 'BigInt' },
        ],
      },
    },
  },
} as unknown as PrismaInternals);

describe('the row of a refusal', () => {
  const world = new FenceWorld('fence_values', 'allow', []);
  let writer: pg.Client;
  const fencing = new Fencing('fence', new Set(['Entry']), MODELS);

  afterAll(() => void vi.unstubAllEnvs());
  beforeAll(async () => {
    // Neither the process nor its session has the time of UTC.
    vi.stubEnv('TZ', 'Asia/Kolkata');
    await world.admin.query(`
      CREATE TABLE people.entry (${NAMES.map((name) => `${name} ${COLUMNS[name][1]}`).join(', ')},
        fence bigint NOT NULL DEFAULT 0, PRIMARY KEY (${NAMES.join(', ')}));
      ${guardSql('people.entry', 'fence', 'allow')}
      GRANT ALL ON people.entry TO PUBLIC`);
    writer = await world.session();
    await writer.query(`SET "TimeZone" = 'America/St_Johns'; SET fenced_lock.token = '5'`);
  });

  const USUAL: Readonly<Record<Column, string>> = {
    serial: '1',
    at: '2026-01-01',
    zoned: '2026-01-01Z',
    day: '2026-01-01',
    mark: '\\x00',
    code: '1',
    share: '1',
  };
  const USUAL_VALUES = {
    serialField: 1n,
    atField: new Date('2026-01-01T00:00:00Z'),
    zonedField: new Date('2026-01-01T00:00:00Z'),
    dayField: new Date('2026-01-01T00:00:00Z'),
    markField: Uint8Array.of(0),
    codeField: '1',
    shareField: 1,
  };

  test.each<[string, Partial<Record<Column, string>>, object]>([
    ['of the usual values', {}, {}],
    [
      'of milliseconds, bytes and a wide integer',
      { serial: '9007199254740993', at: '2026-07-01 01:02:03.45', mark: '\\x00ff5c' },
      {
        serialField: 9007199254740993n,
        atField: new Date('2026-07-01T01:02:03.450Z'),
        markField: Uint8Array.of(0, 255, 92),
      },
    ],
    // What a Date does not keep stays the text of Postgres.
    [
      'of microseconds',
      { at: '2026-07-01 01:02:03.456789', zoned: '2026-07-01 01:02:03.456789Z' },
      { atField: '2026-07-01T01:02:03.456789', zonedField: '2026-06-30T22:32:03.456789-02:30' },
    ],
    [
      'of no year that a Date has',
      { at: 'infinity', zoned: '-infinity', day: '0044-03-15 BC' },
      { atField: 'infinity', zonedField: '-infinity', dayField: '0044-03-15 BC' },
    ],
    ['of text that looks like others', { code: '2026-01-01T00:00:00Z' }, { codeField: '2026-01-01T00:00:00Z' }],
  ])('has the values that the client has, and is found by them: %s', async (_, columns, values) => {
    const row = { ...USUAL, ...columns };
    await world.admin.query('TRUNCATE people.entry');
    await world.overriding((session) =>
      session.query(`INSERT INTO people.entry VALUES (${NAMES.map((_, n) => `$${n + 1}`).join(', ')}, $8)`, [
        ...NAMES.map((name) => row[name]),
        FRESHER,
      ]),
    );
    const refused = await writer.query('DELETE FROM people.entry').catch((error: unknown) => error);
    const error = fromGuard(
      refused,
      {
        sqlState: (thrown) => (thrown as pg.DatabaseError).code,
        sqlDetail: (thrown) => (thrown as pg.DatabaseError).detail,
      },
      { key: 'entry', token: 5n, ofHandle: false, fencing },
    ) as StaleTokenError;
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error.where).toEqual({ ...USUAL_VALUES, ...values });

    const found = fencing.rowOf('Entry', error.where);
    await writer.query('BEGIN');
    try {
      await writer.query(AWAIT_ROW, [...(found ?? [])]);
      const { rows } = await world.admin.query('SELECT FROM people.entry FOR UPDATE SKIP LOCKED');
      expect(rows).toEqual([]);
    } finally {
      await writer.query('ROLLBACK');
    }
  });
});
