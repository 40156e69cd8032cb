import { expect, test } from 'vitest';
import { CommitWatcher } from '../../../../src/addons/testing/faults/commit-watcher.js';

/** A message of Postgres: its letter, its length, and what it says. */
function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
}
/** What comes before it on every connection. */
const STARTUP = Buffer.from('\0\0\0\u000c\0\u0003\0\0a\0b\0');

test.each<[says: string, isCommit: boolean, message: Buffer]>([
  ['a simple query', true, message('Q', 'COMMIT\0')],
  ['one that is spelled otherwise', true, message('Q', ' commit  work; \0')],
  ['an extended query', true, message('P', '\0COMMIT\0\0\0')],
  ['a prepared statement', true, message('P', 'its name\0COMMIT\0\0\0')],
  ['a statement that names it', false, message('Q', "SELECT 'COMMIT'\0")],
  ['a value', false, message('B', '\0\0\0\0\0\u0001\0\0\0\u0006COMMIT\0\0')],
])('COMMIT is known however the network cuts the bytes: %s, %s', (_, isCommit, sent) => {
  const bytes = Buffer.concat([STARTUP, message('Q', 'SELECT 1\0'), sent]);
  expect(new CommitWatcher().hasCommit(bytes)).toBe(isCommit);
  const watcher = new CommitWatcher();
  const found = [...bytes].filter((byte) => watcher.hasCommit(Buffer.from([byte])));
  expect(found).toHaveLength(isCommit ? 1 : 0);
});

test('the answer is a yes only if it was not rolled back', () => {
  const watcher = new CommitWatcher();
  expect(watcher.hasCommitReply(message('C', 'ROLLBACK\0'))).toBe(false);
  const [first, ...rest] = message('C', 'COMMIT\0');
  expect(watcher.hasCommitReply(Buffer.from([first as number]))).toBe(false);
  expect(watcher.hasCommitReply(Buffer.from(rest))).toBe(true);
});
