import { expect, test } from 'vitest';
import { Backoff } from '../../src/base/backoff.js';

const pausesOf = (backoff: Backoff, tries: number) => Array.from({ length: tries }, () => backoff.next());

test('each pause is twice as long as the one before, up to the longest', () => {
  expect(pausesOf(new Backoff(25, 150), 5)).toEqual([25, 50, 100, 150, 150]);
});

test('behind a success the pauses begin with the first again', () => {
  const backoff = new Backoff(25, 150);
  pausesOf(backoff, 4);
  backoff.reset();
  expect(pausesOf(backoff, 2)).toEqual([25, 50]);
});
