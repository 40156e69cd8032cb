import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/keys.js';
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
      const { lease, channel } = namesOf('fenced-lock:', key);
      // An empty one would not count.
      expect(hashTag(lease)).not.toBe('');
      expect(hashTag(lease)).toBe(key.includes('}') ? hashOf(key) : key);
      expect(hashTag(channel)).toBe(hashTag(lease));
    }),
    { seed },
  );
});

test('different keys have different names, and none is the beginning of a longer one', () => {
  fc.assert(
    fc.property(anyKey, anyKey, (one, other) => {
      fc.pre(one !== other);
      const [names, others] = [namesOf('p:', one), namesOf('p:', other)];
      expect(new Set([names.lease, names.channel, others.lease, others.channel]).size).toBe(4);
      expect(others.lease.startsWith(names.lease)).toBe(false);
    }),
    { seed },
  );
});

test('the key stands in its names, so that an operator finds it', () => {
  expect(namesOf('fenced-lock:', 'stock:1')).toEqual({
    lease: 'fenced-lock:{stock:1}:lease',
    channel: 'fenced-lock:{stock:1}:wake',
  });
  expect(namesOf('fenced-lock:', 'stock:{1}').lease).toMatch(/^fenced-lock:\{[0-9a-f]{40}\}:stock:\{1\}:lease$/);
});
