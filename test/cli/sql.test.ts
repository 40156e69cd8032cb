import { describe, expect, test } from 'vitest';
import { createDatabase } from './database.js';
import { project } from './project.js';

const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';
const shop = (models = 'model Stock {\n  id    Int    @id\n  fence BigInt @default(0)\n}\n') =>
  project({ 'prisma/schema.prisma': DATASOURCE + models });

describe('sql', () => {
  test.each([['--guard', 'requier'], ['--bogus'], ['--field', '1x'], ['--role', ''], ['--role'], ['too-much']])(
    'with wrong usage it writes a script that fails: %s %s',
    async (...args) => {
      await using database = await createDatabase();
      const { code, out, err } = await shop().run('sql', ...args);
      expect([code, err]).toEqual([2, expect.stringContaining('error: ')]);
      await expect(database.pool.query(out)).rejects.toThrow('fenced-lock sql has failed, and wrote no script');
      const asJson = await shop().run('sql', '--json', ...args);
      expect(asJson).toMatchObject({ code: 2, json: { ok: false, error: expect.any(String) } });
    },
  );

  test('other commands with wrong usage, and its help, write no script', async () => {
    expect(await shop().run('init', '--role', 'sql', '--bogus')).toMatchObject({ code: 2, out: '' });
    const help = await shop().run('sql', '--help');
    expect(help).toMatchObject({ code: 0, out: expect.not.stringContaining('RAISE') });
  });
});
