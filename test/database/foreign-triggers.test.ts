import { describe, expect, test } from 'vitest';
import { guardSql } from '../support/fence-world.js';
import { Stage } from './role-database.js';

describe('triggers and errors that reach other roles', () => {
  const stage = new Stage('sec_foreign_triggers', async (stage) => {
    await stage.install();
    const owner = await stage.session('sec_owner');
    await owner.query(`CREATE SCHEMA shop;
      CREATE TABLE shop.stock (id integer PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
      CREATE TABLE shop.vault (id text PRIMARY KEY, note text, fence bigint NOT NULL DEFAULT 0);
      CREATE TABLE shop.parent (id integer PRIMARY KEY);
      CREATE TABLE shop.child (secret text PRIMARY KEY, parent integer REFERENCES shop.parent ON DELETE CASCADE,
        fence bigint NOT NULL DEFAULT 0);
      CREATE TABLE shop.loose (id integer PRIMARY KEY, fence bigint DEFAULT 0);
      ${guardSql('shop.stock', 'fence', 'prove')} ${guardSql('shop.vault', 'fence', 'allow')} ${guardSql('shop.child', 'fence', 'allow')}
      ${guardSql('shop.loose', 'fence', 'allow')}
      GRANT USAGE ON SCHEMA shop TO sec_app, sec_tenant;
      GRANT ALL ON shop.stock TO sec_app;
      GRANT ALL ON shop.loose TO sec_app;
      GRANT SELECT, UPDATE ON shop.vault TO sec_app;
      GRANT DELETE, UPDATE (note) ON shop.vault TO sec_tenant;
      GRANT SELECT, DELETE ON shop.parent TO sec_tenant`);
    await owner.query(`BEGIN; SELECT fenced_lock.override('test');
      INSERT INTO shop.vault VALUES ('iban-secret', 'n', 5); INSERT INTO shop.parent VALUES (1);
      INSERT INTO shop.child VALUES ('child-secret', 1, 5); INSERT INTO shop.loose VALUES (1, 7); COMMIT`);
  });

  const guarded = async (table: string) => {
    const app = await stage.session('sec_app');
    const { rows } = await app.query('SELECT table_name FROM fenced_lock.guards() WHERE table_name = $1', [table]);
    return rows.length;
  };

  test('a trigger of our name on an attacker’s table keeps nobody from asking for the guards', async () => {
    const attacker = await stage.session('sec_tenant');
    await attacker.query(`CREATE TEMP TABLE x (id integer, fence bigint);
      CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard()`);
    expect(await guarded('stock')).toBe(1);
    expect(await guarded('x')).toBe(0);
  });

  test.each([
    'BEFORE INSERT OR UPDATE OR DELETE ON shop.stock FOR EACH ROW WHEN (false)',
    'BEFORE INSERT ON shop.stock FOR EACH ROW',
    'BEFORE INSERT OR UPDATE OF id OR DELETE ON shop.stock FOR EACH ROW',
  ])('a guard that does not fire for every write counts for none: %s', async (when) => {
    const app = await stage.session('sec_app');
    await app.query('BEGIN');
    await app.query(`CREATE OR REPLACE TRIGGER zzz_fenced_lock_guard ${when}
      EXECUTE FUNCTION fenced_lock.guard('fence', 'prove')`);
    const { rows } = await app.query("SELECT 1 FROM fenced_lock.guards() WHERE table_name = 'stock'");
    expect(rows).toEqual([]);
    await app.query('ROLLBACK');
    expect(await guarded('stock')).toBe(1);
  });

  test('a refusal names the row to who may read it, and to nobody else', async () => {
    const refused = async (role: 'sec_app' | 'sec_tenant') => {
      const session = await stage.session(role);
      await session.query("SET fenced_lock.token = '1'");
      const error = await session.query("UPDATE shop.vault SET note = 'z'").catch((error: unknown) => error);
      return JSON.parse((error as { detail: string }).detail) as unknown;
    };
    expect(await refused('sec_app')).toMatchObject({ table: 'vault', key: { id: 'iban-secret' } });
    expect(await refused('sec_tenant')).toMatchObject({ table: 'vault', key: null });
  });

  test('nor in the action of a foreign key, which runs as the owner of the table', async () => {
    const attacker = await stage.session('sec_tenant');
    await attacker.query("SET fenced_lock.token = '1'");
    const error = await attacker.query('DELETE FROM shop.parent WHERE id = 1').catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'FL001' });
    expect((error as { detail: string }).detail).not.toContain('child-secret');
  });

  test('a writer without a token cannot clear a fence that may be NULL', async () => {
    const app = await stage.session('sec_app');
    await app.query('UPDATE shop.loose SET fence = NULL');
    const { rows } = await app.query('SELECT fence FROM shop.loose');
    expect(rows).toEqual([{ fence: '7' }]);
  });
});
