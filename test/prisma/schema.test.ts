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

const TEXT = `
/// model User { posts Post }
model User {
  id    Int    @id // posts Post @relation(fields: [x])
  posts Post[]
  bossId Int?
  boss  User?  @relation("b",
    fields: [bossId],
    references: [id])
  team  User[] @relation("b")
}

model Post {
  id       Int @id
  fence    BigInt @default(0) @map("row_fence")
  authorId Int
  author   User   @relation(fields: [authorId], references: [id])
  @@map("posts")
}
`;

describe('what a client tells of its models', () => {
  const models = readModels(DATA, TEXT, 'public');

  test('tables, schemas and columns', () => {
    expect(models.get('User')).toMatchObject({ schema: 'public', table: 'User' });
    expect(models.get('Post')).toMatchObject({ schema: 'blog', table: 'posts' });
    expect(models.get('Post')?.columns.get('fence')).toBe('row_fence');
  });

  test('both ends of a relation, lists, and where the key stands', () => {
    const user = models.get('User')?.relations;
    expect(user?.get('posts')).toEqual({
      model: 'Post',
      back: 'author',
      shape: { list: true, backList: false, holdsKey: false },
    });
    expect(models.get('Post')?.relations.get('author')?.shape).toEqual({ list: false, backList: true, holdsKey: true });
    expect(user?.get('boss')).toEqual({
      model: 'User',
      back: 'team',
      shape: { list: false, backList: true, holdsKey: true },
    });
    expect(user?.get('team')?.back).toBe('boss');
  });

  test('a client that does not carry its text tells no shapes, and nested writes through them are refused', () => {
    const blind = readModels(DATA, undefined, 'public');
    expect(blind.get('User')?.relations.get('posts')?.shape).toBeUndefined();
  });
});
