import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyOf, namesOf } from '../../src/redis/names.js';
import { seed } from '../options/seed.js';

const anyKey = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
  fc.string({ unit: fc.constantFrom('{', '}', ':', 'a'), minLength: 1, maxLength: 8 }),
);
/** What a Cluster hashes: between the first `{` and the first `}` behind it. */
const hashOf = (key: string) => createHash('sha1').update(key).digest('hex');
const hashTag = (name: string) => /\{([^}]*)\}/.exec(name)?.[1];

test('all names of a key share one hash tag, whatever braces the key has', () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      const { lease, queue, wake } = namesOf('fenced-lock:', key);
      // An empty one would not count.
      expect(hashTag(lease)).not.toBe('');
      expect(hashTag(lease)).toBe(key.includes('}') ? hashOf(key) : key);
      expect([hashTag(queue), hashTag(wake)]).toEqual([hashTag(lease), hashTag(lease)]);
    }),
    { seed },
  );
});

test('a name leads back to its key, whatever braces and endings the key has', () => {
  const ending = fc.constantFrom('', ':lease', ':queue', ':wake', '}', '{', '}:lease');
  fc.assert(
    fc.property(anyKey, ending, (start, end) => {
      const key = start + end;
      fc.pre(!key.includes('\0'));
      const { lease, queue } = namesOf('fenced-lock:', key);
      expect([keyOf('fenced-lock:', lease), keyOf('fenced-lock:', queue)]).toEqual([key, key]);
    }),
    { seed },
  );
});

test('a name of another make leads to no key', () => {
  const others = ['other:{stock:1}:lease', 'fenced-latch{stock:1}:lease', 'stock:1', ''];
  const unlike = ['fenced-lock:stock:1', 'fenced-lock:{stock:1', 'fenced-lock:{a}b', 'fenced-lock:{a}b{c}:lease'];
  const refused = ['fenced-lock:{a\0b}:lease'];
  for (const name of [...others, ...unlike, ...refused]) {
    expect(keyOf('fenced-lock:', name), name).toBeUndefined();
  }
});
