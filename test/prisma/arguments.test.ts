import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { asPrismaReads } from '../../src/prisma/arguments.js';
import { Prisma, PrismaClient } from '../generated/fence/client.js';

const { value: field } = new PrismaClient({ adapter: { provider: 'postgres' } as never }).word.fields;

const SCALARS: Record<string, object> = {
  'a date': new Date(0),
  'a date of another realm': runInNewContext('new Date(0)') as Date,
  'a decimal': new Prisma.Decimal('1.50'),
  'the decimal NaN': new Prisma.Decimal('NaN'),
  bytes: Buffer.from('bytes'),
  'a typed array': new Uint8Array([1, 2]),
  'a null of a JSON column': Prisma.DbNull,
  'a field of the model': field,
};

test.each(Object.entries(SCALARS))('a value that is an object stays the same one: %s', (_, value) => {
  const { data, list } = asPrismaReads({ data: { value }, list: [value] }) as {
    data: { value: object };
    list: object[];
  };
  expect(data.value).toBe(value);
  expect(list[0]).toBe(value);
});

test('`Prisma.skip` is left out of objects, and left to Prisma, which refuses it, in lists', () => {
  const { skip } = Prisma;
  expect(asPrismaReads({ a: skip, b: { c: skip, d: 1 }, e: [skip] })).toEqual({ b: { d: 1 }, e: [skip] });
});

test('what is undefined stays, because Prisma may refuse it', () => {
  expect(Object.keys(asPrismaReads({ where: undefined }) as object)).toEqual(['where']);
});

test('a date of a library is what its toJSON gives', () => {
  class Day {
    toJSON(): string {
      return '2026-11-01';
    }
  }
  expect(asPrismaReads({ data: { at: new Day() } })).toEqual({ data: { at: '2026-11-01' } });
});
