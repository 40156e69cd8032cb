import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { admitByHand as admit } from '../support/admit-by-hand.js';
import { outcome, Stage } from './role-database.js';

const INVALID = '22023';

describe('what one admission may ask for', () => {
  let readonly: pg.Client;
  const stage = new Stage('security_admission', async () => {
    await stage.install();
    readonly = await stage.session('sec_readonly');
  });

  test.each([
    ['a negative leaseTime', { leaseTime: -1 }],
    ['a negative workTime', { workTime: -1 }],
    ['a negative waitTime', { waitTime: -1 }],
    ['no keys', { keys: [], holders: [] }],
    ['more than 100 keys', { keys: Array(101).fill('k'), holders: Array(101).fill(randomUUID()) }],
    ['a key of more than 512 bytes', { keys: ['ä'.repeat(257)] }],
    ['an empty key', { keys: [''] }],
    ['a key without a holder', { holders: [] }],
    ['a token too many', { tokens: ['1', '2'] }],
    ['a successor too many', { tokens: ['1'], successors: [randomUUID(), randomUUID()] }],
    ['no attempt', { attempt: undefined }],
  ])('is refused: %s', async (_, more) => {
    expect(await outcome(readonly, admit(more))).toBe(INVALID);
    expect((await stage.admin.query('SELECT 1 FROM fenced_lock.admission')).rowCount).toBe(0);
  });

  test('is refused to a snapshot from before the row of the key was deleted, behind a turn that it does not see', async () => {
    const keys = ['deleted', 'deleted:too'];
    expect(await outcome(readonly, admit({ keys }))).toBe('ok');
    await readonly.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1');
    await stage.admin.query(admit({ keys: ['deleted'] }));
    await stage.admin.query(`DELETE FROM fenced_lock.admission WHERE key = 'deleted'`);
    await expect(readonly.query(admit({ keys }))).rejects.toMatchObject({ code: '40001' });
    await readonly.query('ROLLBACK');
    expect(await outcome(readonly, admit({ keys }))).toBe('ok');
    await stage.admin.query('DELETE FROM fenced_lock.admission');
  });

  const [MINE, NEXT] = [randomUUID(), randomUUID()];
  /** Arrays as text, that of `name` another one. */
  const arrays = { keys: '{odd}', holders: `{${MINE}}`, tokens: 'NULL', successors: 'NULL' };
  const admitArrays = (more: Partial<typeof arrays>) => {
    const { keys, holders, tokens, successors } = { ...arrays, ...more };
    const literal = (text: string) => (text === 'NULL' ? text : `'${text}'`);
    return `SELECT fenced_lock.admit(${literal(keys)}, ${literal(holders)}, '${MINE}', 30000, 30000, 1000,
      NULL, ${literal(tokens)}, ${literal(successors)})`;
  };
  type Odd = readonly [name: keyof typeof arrays, wrong: string, beside: Partial<typeof arrays>];
  const odd: readonly Odd[] = [
    ['keys', '{NULL}', {}],
    ['keys', '{{odd}}', {}],
    ['keys', '[0:1]={other,odd}', { holders: `{${MINE},${MINE}}` }],
    ['keys', 'NULL', {}],
    ['holders', '{NULL}', {}],
    ['holders', `{{${MINE}}}`, {}],
    ['holders', 'NULL', {}],
    ['tokens', '{NULL}', {}],
    ['tokens', '{{TOKEN}}', {}],
    ['successors', '{NULL}', { tokens: '{TOKEN}' }],
    ['successors', `{{${NEXT}}}`, { tokens: '{TOKEN}' }],
  ];

  test.each(odd)('is refused, and writes nothing: %s as %s', async (name, wrong, beside) => {
    const rows = async () =>
      (await stage.admin.query('SELECT * FROM fenced_lock.admission')).rows as { token: string }[];
    expect(await outcome(readonly, admitArrays({}))).toBe('ok');
    const before = await rows();
    const token = before[0]?.token ?? '';
    const statement = admitArrays({ ...beside, [name]: wrong }).replaceAll('TOKEN', token);
    expect(await outcome(readonly, statement)).toBe(INVALID);
    expect(await rows()).toEqual(before);
    // And it is only that one thing.
    const right = { tokens: `{${token}}`, successors: `{${NEXT}}` };
    expect(await outcome(readonly, admitArrays(right))).toBe('ok');
    await stage.admin.query('DELETE FROM fenced_lock.admission');
  });

  test('100 keys of 512 bytes are admitted, for the longest times', async () => {
    const keys = Array.from({ length: 100 }, (_, at) => `${at}`.padStart(512, '\u0001'));
    const longest = 2 ** 31 - 1;
    const times = { leaseTime: longest, workTime: longest, waitTime: longest };
    const full = { keys, holders: keys.map(() => randomUUID()), ...times };
    expect(await outcome(readonly, admit(full), 'ROLLBACK')).toBe('ok');
  });

  test('a role that may not write cannot switch off the limits of its admission by it', async () => {
    await readonly.query('BEGIN');
    await readonly.query(admit({ leaseTime: 300 }));
    const { rows } = await readonly.query("SELECT current_setting('idle_in_transaction_session_timeout') AS idle");
    expect(rows).toEqual([{ idle: '300ms' }]);
    await readonly.query('ROLLBACK');
  });
});
