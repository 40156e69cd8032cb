import { describe, expect, test } from 'vitest';
import type { Admission } from '../../src/transaction/admission.js';
import { type Evidence, judge } from '../../src/transaction/commit.js';

const admission: Admission = {
  key: 'stock:1',
  attempt: 'ours',
  tokens: [100n],
  token: 100n,
  turn: 50n,
  xid: '1000',
  pid: 1,
  epoch: 'e1',
};
const evidence: Evidence = { status: 'committed', epoch: 'e1', born: 10n, turns: 50n, attempts: ['ours', 'before'] };
const without = (...attempts: string[]) => ({ attempts });

describe('the rule of the outcome', () => {
  test.each<[string, Partial<Evidence>, string]>([
    ['aborted is the truth in any epoch', { status: 'aborted', epoch: undefined }, 'aborted'],
    ['an xid that was never given out was lost', { status: 'future', epoch: 'e2' }, 'aborted'],
    ['in progress in the same epoch: look again', { status: 'in progress' }, 'open'],
    ['in progress in another epoch may still be it: look again', { status: 'in progress', epoch: 'e2' }, 'open'],
    ['committed in the same epoch is the truth, whatever the row says', { born: undefined }, 'committed'],
    ['committed in another epoch, and in the history', { epoch: 'e2' }, 'committed'],
    ['committed in another epoch, and not in the history', { epoch: 'e2', ...without('other') }, 'aborted'],
    ['no epoch since the crash, and in the history', { epoch: undefined }, 'committed'],
    ['too long ago to be known, and in the history', { status: undefined }, 'committed'],
    ['fewer turns than ours: ours is not among them', { epoch: 'e2', turns: 49n, ...without('before') }, 'aborted'],
    ['15 turns later the history would still have it', { epoch: 'e2', turns: 65n, ...without('a') }, 'aborted'],
    ['16 turns later it proves nothing', { epoch: 'e2', turns: 66n, ...without('a') }, 'unknown'],
    ['no row proves nothing', { epoch: 'e2', born: undefined, turns: 0n, ...without() }, 'unknown'],
    ['a row born after our token proves nothing', { epoch: 'e2', born: 100n, ...without('a') }, 'unknown'],
    ['a row born just before our token was ours', { epoch: 'e2', born: 99n }, 'committed'],
  ])('%s', (_, change, outcome) => {
    expect(judge(admission, { ...evidence, ...change })).toBe(outcome);
  });

  test('with no epoch at the admission, "in progress" and "committed" are not taken for another\'s or ours', () => {
    const unknown = { ...admission, epoch: undefined };
    expect(judge(unknown, { ...evidence, status: 'in progress', epoch: undefined })).toBe('open');
    expect(judge(unknown, { ...evidence, status: 'future', epoch: undefined })).toBe('aborted');
    expect(judge(unknown, { ...evidence, epoch: undefined, ...without('a') })).toBe('aborted');
  });
});
