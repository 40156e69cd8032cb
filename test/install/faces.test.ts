import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { blocks } from '../docs/page.js';
import { pack } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';
import { Trial } from './trial.js';

describeWithShop('somebody without Prisma, by the page alone', () => {
  describe.each(['pg', 'kysely', 'drizzle'])('of %s', (face) => {
    test('gets from an empty folder to a sale under a lock, and doctor has nothing to say', async () => {
      const newcomer = await Trial.begin();
      try {
        const [commands = ''] = blocks(`docs/guides/${face}.md`, 'sh');
        const [install = '', database = ''] = commands.split('\n');
        const [program = ''] = blocks(`docs/guides/${face}.md`);
        await newcomer.database.pool.query('CREATE TABLE stock (id int PRIMARY KEY, quantity int NOT NULL)');
        await newcomer.database.pool.query('INSERT INTO stock VALUES (1, 10)');
        await newcomer.sh('npm init -y && npm pkg set type=module && npm install --save-dev tsx typescript@5');
        const { err } = await newcomer.sh(install.replace('prisma-extension-fenced-lock', await pack(newcomer.folder)));
        expect(err).not.toMatch(/EBADENGINE +package: 'prisma-extension-fenced-lock|ERESOLVE/);
        expect(existsSync(newcomer.path('node_modules/@prisma'))).toBe(false);
        const { out } = await newcomer.sh(database.split(' | ')[0] ?? '');
        await newcomer.database.pool.query(`BEGIN; ${out} COMMIT`);
        newcomer.write('shop.ts', program);
        await newcomer.sh('tsc --strict --noEmit --skipLibCheck --target es2022 --module nodenext shop.ts');
        await newcomer.sh('tsx shop.ts');
        const { rows } = await newcomer.database.pool.query('SELECT quantity, fence::int > 0 AS fenced FROM stock');
        expect(rows).toEqual([{ quantity: 9, fenced: true }]);
        expect(await newcomer.complaints()).toEqual([]);
      } finally {
        await newcomer.end();
      }
    }, 300_000);
  });
});
