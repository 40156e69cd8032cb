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
    '/* one /* nested */ comment */ COMMIT',
    "SELECT ';'; COMMIT",
    "SELECT E'\\''; COMMIT; --'",
    'SELECT $$ ; $$; COMMIT',
    'SELECT $a$ $$ $a$; COMMIT',
    'SELECT "a;""b"; COMMIT',
  ])('is found: %s', (text) => {
    expect(transactionControl(text)).toMatch(/^(commit|begin|end|abort|rollback|start|prepare)/i);
  });

  test.each([
    'SELECT 1',
    "SELECT 'a; COMMIT'",
    'SELECT $$ ; COMMIT $$',
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
