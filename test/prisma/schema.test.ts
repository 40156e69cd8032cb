import { describe, expect, test } from 'vitest';
import { readModels } from '../../src/prisma/schema.js';

const object = (name: string, type: string, relationName: string) => ({ name, kind: 'object', type, relationName });
const scalar = (name: string, type: string, dbName?: string) => ({
  name,
  kind: 'scalar',
  type,
  ...(dbName ? { dbName } : {}),
});

const DATA = {
  models: {
    User: {
      fields: [
        scalar('id', 'Int'),
        object('posts', 'Post', 'PostToUser'),
        object('boss', 'User', 'b'),
        object('team', 'User', 'b'),
      ],
      dbName: null,
    },
    Post: {
      fields: [scalar('fence', 'BigInt', 'row_fence'), object('author', 'User', 'PostToUser')],
      dbName: 'posts',
      schema: 'blog',
    },
  },
};

describe('what a client tells of its models', () => {
  const models = readModels(DATA, false, () => 'public');

  test('tables, schemas and columns', () => {
    expect(models.get('User')).toMatchObject({ schema: 'public', table: 'User' });
    expect(models.get('Post')).toMatchObject({ schema: 'blog', table: 'posts' });
    expect(models.get('Post')?.columns.get('fence')).toBe('row_fence');
  });

  test('the model at the other end of each relation', () => {
    expect(models.get('User')?.relations.get('posts')).toBe('Post');
    expect(models.get('Post')?.relations.get('author')).toBe('User');
    expect(models.get('User')?.relations.get('boss')).toBe('User');
  });
});
