import { describe, expect, test } from 'vitest';
import { transactionControl } from '../../src/transaction/gate.js';

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
    expect(transactionControl(text)).toMatch(/^(COMMIT|BEGIN|END|ABORT|ROLLBACK|START|PREPARE)$/);
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
    expect(transactionControl(text)).toBeUndefined();
  });
});
