import { describe, expect, test } from 'vitest';
import { refusedCommand } from '../../src/transaction/gate.js';

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
    '; COMMIT',
    ';;/* x */;\n(COMMIT',
    '\f\vCOMMIT',
    '-- COMMIT\n-- another\nROLLBACK /* TO a */ AND CHAIN',
    'PREPARE /* x */ TRANSACTION',
    'ROLLBACK WORK',
    'ROLLBACK AND CHAIN -- TO a',
    'COMMIT /* then SELECT 1 */',
    'COMMIT TO',
    `${' '.repeat(1_500)}COMMIT`,
    `PREPARE${' '.repeat(1_500)}TRANSACTION 'x'`,
    `PREPARE /* ${'x'.repeat(1_500)} */ TRANSACTION 'x'`,
  ])('is found: %s', (text) => {
    expect(refusedCommand(text)).toMatch(/^(COMMIT|BEGIN|END|ABORT|ROLLBACK|START|PREPARE)$/);
  });

  test.each([
    'SELECT 1',
    '-- ; COMMIT',
    ' -- COMMIT',
    '/* -- */ SELECT 1 -- */ COMMIT',
    '/* ; COMMIT */ SELECT 1',
    '/* COMMIT',
    'START_IT',
    'ROLLBACK TO SAVEPOINT a',
    'ROLLBACK WORK TO a',
    'ROLLBACK /* x */ TRANSACTION -- y\n TO a',
    `ROLLBACK${' '.repeat(1_500)}TO a`,
    'SAVEPOINT a',
    'RELEASE a',
    'PREPARE statement AS SELECT 1',
    'PREPARE statement AS SELECT 1 AS transaction',
    'SELECT begin FROM committed',
  ])('is not seen where there is none: %s', (text) => {
    expect(refusedCommand(text)).toBeUndefined();
  });
});

describe('COPY in raw SQL', () => {
  test.each([
    'COPY t FROM STDIN',
    'copy t (a, b) from stdin',
    'COPY t FROM\n\tSTDIN (FORMAT csv)',
    'COPY "Stock" ("id", "from")FROM STDIN;',
    'COPY t FROM/* the client */STDIN',
    'COPY t FROM /* one /* nested */ comment */ STDIN',
    'COPY t -- TO STDOUT\nFROM -- x\nSTDIN',
    "COPY t FROM STDIN WITH (DELIMITER ',', NULL '')",
    '/* x */ ; COPY t FROM STDIN',
    'COPY BINARY t FROM STDIN',
    'COPY t FROM STDOUT',
  ])('from the client is found: %s', (text) => {
    expect(refusedCommand(text)).toBe('COPY');
  });

  test.each(['RESET ALL', 'reset /* x */ all;', '-- x\nRESET\tALL'])(
    'that resets all settings is found: %s',
    (text) => {
      expect(refusedCommand(text)).toBe('RESET');
    },
  );

  test.each(['RESET work_mem', 'RESET ROLE', 'RESET "all"'])('that resets one setting is not: %s', (text) => {
    expect(refusedCommand(text)).toBeUndefined();
  });

  test.each([
    'COPY t TO STDOUT',
    'COPY (SELECT 1) TO STDOUT',
    'COPY (SELECT a FROM stdin) TO STDOUT',
    'COPY (SELECT a FROM (SELECT a FROM stdin) AS b) TO STDOUT',
    "COPY t FROM 'rows.csv'",
    "COPY t FROM PROGRAM 'cat from stdin'",
    "COPY t FROM '/tmp/ FROM STDIN'",
    'COPY "from stdin" TO STDOUT',
    "COPY t TO STDOUT (NULL 'from stdin')",
    'COPY (SELECT $$ FROM STDIN $$) TO STDOUT',
    'COPY t TO STDOUT -- FROM STDIN',
    'COPY t TO /* FROM /* FROM */ STDIN */ STDOUT',
    'COPY xfrom stdin',
    'COPY t FROM stdin_of_today',
    'COPY t FROMSTDIN',
    'COPY_IT FROM STDIN',
    'SELECT copy FROM stdin',
  ])('that reads nothing from the client is not: %s', (text) => {
    expect(refusedCommand(text)).toBeUndefined();
  });
});
