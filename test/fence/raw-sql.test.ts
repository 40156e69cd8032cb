import { describe, expect, test } from 'vitest';
import { transactionControl } from '../../src/fence/raw-sql.js';

describe('transaction control in raw SQL', () => {
  test.each([
    'COMMIT',
    ' commit work',
    'BEGIN',
    'begin isolation level serializable',
    'END;',
    'ABORT',
    'ROLLBACK',
    'ROLLBACK AND CHAIN',
    'START\nTRANSACTION',
    "PREPARE TRANSACTION 'x'",
    '-- a comment\nCOMMIT',
    // For Postgres a carriage return ends a line, too.
    '-- a comment\rCOMMIT',
    '-- a comment\r\nCOMMIT',
    '/* one /* nested */ comment */ COMMIT',
    "SELECT ';'; COMMIT",
    "SELECT E'\\''; COMMIT; --'",
    'SELECT $$ ; $$; COMMIT',
    'SELECT $a$ $$ $a$; COMMIT',
    'SELECT "a;""b"; COMMIT',
    // A backslash escapes in E'…' alone: not in a plain string, a quoted name, or behind a word that ends in e.
    "SELECT 'a\\'; COMMIT",
    'SELECT "a\\"; COMMIT',
    "SELECT date'a\\'; COMMIT",
    "E'\\''; COMMIT; --'",
    // A name may hold a dollar, and begins no text by it; nor does a parameter.
    'SELECT a$b$; COMMIT',
    'SELECT $1, $$ ; $$; COMMIT',
  ])('is found: %s', (text) => {
    expect(transactionControl(text)).toMatch(/^(commit|begin|end|abort|rollback|start|prepare)/i);
  });

  test.each([
    'SELECT 1',
    "SELECT 'a; COMMIT'",
    'SELECT $$ ; COMMIT $$',
    '$$ ; COMMIT $$',
    "SELECT E'a''\\'; COMMIT'",
    'SELECT $tag$ ; COMMIT; $tag$',
    '-- ; COMMIT',
    '/* ; COMMIT */ SELECT 1',
    'UPDATE "; COMMIT" SET a = 1',
    'SELECT $1; SELECT 2',
    'ROLLBACK TO SAVEPOINT a',
    'ROLLBACK WORK TO a',
    'SAVEPOINT a',
    'RELEASE a',
    'PREPARE statement AS SELECT 1',
    'SELECT begin FROM committed',
    "SELECT 'unfinished; COMMIT",
  ])('is not seen where there is none: %s', (text) => {
    expect(transactionControl(text)).toBeUndefined();
  });
});
