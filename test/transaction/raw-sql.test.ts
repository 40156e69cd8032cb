import { expect, test } from 'vitest';
import { refusedCommand } from '../../src/transaction/gate.js';

test.each([
  ['COMMIT', 'COMMIT'],
  [' commit work', 'COMMIT'],
  ['begin isolation level serializable', 'BEGIN'],
  ['END;', 'END'],
  ['ABORT', 'ABORT'],
  ['ROLLBACK AND CHAIN -- TO a', 'ROLLBACK'],
  ['START\nTRANSACTION', 'START'],
  ["PREPARE /* x */ TRANSACTION 'x'", 'PREPARE'],
  // For Postgres a carriage return ends a line, too.
  ['-- a comment\rCOMMIT', 'COMMIT'],
  ['/* one /* nested */ comment */ ;;\n(COMMIT', 'COMMIT'],
  ['-- COMMIT\n-- another\nROLLBACK /* TO a */ AND CHAIN', 'ROLLBACK'],
  [`${' '.repeat(1_500)}COMMIT`, 'COMMIT'],
  [`PREPARE /* ${'x'.repeat(1_500)} */ TRANSACTION 'x'`, 'PREPARE'],
  ['reset /* x */ all;', 'RESET'],
  ['copy t (a, b) from stdin', 'COPY'],
  ['COPY "Stock" ("id", "from")FROM STDIN;', 'COPY'],
  ['COPY t -- TO STDOUT\nFROM /* one /* nested */ comment */ STDIN', 'COPY'],
  ["COPY t FROM STDIN WITH (DELIMITER ',', NULL '')", 'COPY'],
  ['COPY t FROM STDOUT', 'COPY'],
])('raw SQL that may not be sent under a lock is found: %s', (text, word) => {
  expect(refusedCommand(text)).toBe(word);
});

test.each([
  'SELECT begin FROM committed',
  '-- ; COMMIT',
  '/* -- */ SELECT 1 -- */ COMMIT',
  '/* COMMIT',
  'START_IT',
  'ROLLBACK TO SAVEPOINT a',
  'ROLLBACK /* x */ TRANSACTION -- y\n TO a',
  `ROLLBACK${' '.repeat(1_500)}TO a`,
  'RELEASE a',
  'PREPARE statement AS SELECT 1 AS transaction',
  'RESET work_mem',
  'RESET "all"',
  'COPY (SELECT a FROM (SELECT a FROM stdin) AS b) TO STDOUT',
  "COPY t FROM PROGRAM 'cat from stdin'",
  'COPY "from stdin" TO STDOUT',
  'COPY (SELECT $$ FROM STDIN $$) TO STDOUT',
  'COPY t TO /* FROM /* FROM */ STDIN */ STDOUT',
  'COPY t FROM stdin_of_today',
  'COPY_IT FROM STDIN',
])('other raw SQL is not: %s', (text) => {
  expect(refusedCommand(text)).toBeUndefined();
});
