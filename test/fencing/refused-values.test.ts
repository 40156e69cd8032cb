import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { StaleTokenError } from '../../src/base/errors.js';
import { AWAIT_ROW } from '../../src/database/sql.js';
import { Fencing } from '../../src/fencing/fencing.js';
import { fromGuard } from '../../src/fencing/refusal.js';
import type { PrismaInternals } from '../../src/prisma/internals.js';
import { modelsOf } from '../../src/prisma/models.js';
import { FenceWorld, FRESHER, guardSql } from '../support/fence-world.js';

/** The primary key of the table; the model's fields have other names. */
const COLUMNS = { at: ['DateTime', 'timestamp'], mark: ['Bytes', 'bytea'], share: ['Decimal', 'numeric'] } as const;
const fields = Object.entries(COLUMNS).map(([dbName, [type]]) => ({
  name: `its ${dbName}`,
  kind: 'scalar',
  type,
  dbName,
}));
const MODELS = modelsOf({
  _engineConfig: {},
  _runtimeDataModel: { models: { Entry: { dbName: 'entry', schema: 'people', fields } } },
} as unknown as PrismaInternals);

describe('the row of a refusal', () => {
  const world = new FenceWorld('fence_values', 'allow', []);
  const fencing = new Fencing('fence', new Set(['Entry']), MODELS);
  let writer: pg.Client;

  afterAll(() => void vi.unstubAllEnvs());
  beforeAll(async () => {
    // Neither the process nor its session has the time of UTC.
    vi.stubEnv('TZ', 'Asia/Kolkata');
    const columns = Object.entries(COLUMNS).map(([name, [, type]]) => `${name} ${type}`);
    await world.admin.query(`
      CREATE TABLE people.entry (${columns}, fence bigint NOT NULL, PRIMARY KEY (at, mark, share));
      ${guardSql('people.entry', 'fence', 'allow')}
      GRANT ALL ON people.entry TO PUBLIC`);
    writer = await world.session();
    await writer.query(`SET "TimeZone" = 'America/St_Johns'; SET fenced_lock.token = '5'`);
  });

  const usual = { at: '2026-01-01', mark: '\\x00', share: '1' };
  const values = { 'its at': new Date('2026-01-01T00:00:00Z'), 'its mark': Uint8Array.of(0), 'its share': 1 };

  test.each<[string, Partial<typeof usual>, object]>([
    ['a Date', { at: '2026-07-01 01:02:03.45' }, { 'its at': new Date('2026-07-01T01:02:03.450Z') }],
    ['Bytes', { mark: '\\x00ff5c' }, { 'its mark': Uint8Array.of(0, 255, 92) }],
    ['a Decimal', { share: '1234567890123456.70' }, { 'its share': '1234567890123456.70' }],
  ])('has the values that the client has, and a retry finds it by them: %s', async (_, column, value) => {
    const { at, mark, share } = { ...usual, ...column };
    await world.admin.query('TRUNCATE people.entry');
    await world.overriding((session) =>
      session.query('INSERT INTO people.entry VALUES ($1, $2, $3, $4)', [at, mark, share, FRESHER]),
    );
    const refused: pg.DatabaseError = await writer.query('DELETE FROM people.entry').catch((error) => error);
    const error = fromGuard(
      refused,
      { sqlState: () => refused.code, sqlDetail: () => refused.detail },
      { key: 'entry', token: 5n, ofHandle: false, fencing },
    ) as StaleTokenError;
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error.where).toEqual({ ...values, ...value });

    await writer.query('BEGIN');
    try {
      await writer.query(AWAIT_ROW, [...(fencing.rowOf('Entry', error.where) ?? [])]);
      const { rows } = await world.admin.query('SELECT FROM people.entry FOR UPDATE SKIP LOCKED');
      expect(rows).toEqual([]);
    } finally {
      await writer.query('ROLLBACK');
    }
  });
});
