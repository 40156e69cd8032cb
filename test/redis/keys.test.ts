import fc from 'fast-check';
import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/keys.js';
import { seed } from '../options/seed.js';

const anyKey = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 });
/** What a Cluster hashes: between the first `{` and the first `}` behind it. */
const hashTag = (name: string) => /\{([^}]*)\}/.exec(name)?.[1];

test('all names of a key share one hash tag, whatever braces the key has', () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      const { lease, channel } = namesOf('fenced-lock:', key);
      expect(hashTag(lease)).toMatch(/^[0-9a-f]{16}$/);
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
    lease: expect.stringMatching(/^fenced-lock:\{[0-9a-f]{16}\}:lease:stock:1$/),
    channel: expect.stringMatching(/^fenced-lock:\{[0-9a-f]{16}\}:wake:stock:1$/),
  });
});
