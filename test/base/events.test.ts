import { afterEach, expect, test, vi } from 'vitest';
import { type FencedLockEvent, toEmit } from '../../src/base/events.js';
import { turnOfLoop } from '../waiting/actors.js';

const EVENT: FencedLockEvent = { type: 'lease-lost', key: 'stock:1', error: new Error('gone') };
afterEach(() => void vi.restoreAllMocks());

test('the error of a hook is warned of where nobody listens, with a code and the frames of that error', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const sendMail = () => new Error('no mail\non two lines');
  toEmit(undefined)({ type: 'hook-failed', key: 'stock:1', hook: 'afterCommit', error: sendMail() });
  expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/afterCommit.*"stock:1".*no mail/), {
    code: 'FENCED_LOCK_HOOK',
    detail: expect.stringMatching(/^ {4}at sendMail /),
  });
});

test('a Postgres that is away is warned of where nobody listens, once for many tries', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const error = new Error("Can't reach database server");
  const [emit, other] = [toEmit(undefined), toEmit(undefined)];
  for (const each of [emit, other, emit]) each({ type: 'postgres-unavailable', key: 'stock:1', error });
  expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/"stock:1": Can't reach.*waitTime/), {
    code: 'FENCED_LOCK_POSTGRES',
  });
});

test('an async listener that rejects is warned of, and is no unhandled rejection', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  toEmit(async () => {
    throw new Error('full disk');
  })(EVENT);
  await turnOfLoop();
  expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('full disk'));
});
