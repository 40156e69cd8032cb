import { existsSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pack } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';
import { Trial } from './trial.js';

const PAGE = readFileSync(new URL('../../docs/guides/migrations-without-prisma.md', import.meta.url), 'utf8');

/** What the page says under a heading: its code, as a shell with the tools on its PATH runs it. */
function said(heading: string, language: string): string {
  const section = PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const code = section.split(`\`\`\`${language}\n`)[1]?.split('```')[0] ?? '';
  return code.replaceAll('npx ', '');
}

const TABLE = 'CREATE TABLE stock (id integer PRIMARY KEY, quantity integer NOT NULL)';

describeWithShop('a project without Prisma, installed from the registry and the tarball', () => {
  let project: Trial;

  beforeEach(async () => {
    project = await Trial.begin();
  });
  afterEach(() => project.end());

  async function install(...tools: string[]): Promise<void> {
    project.write('package.json', '{ "type": "module" }');
    const packages = [await pack(project.folder), 'pg@8.23.1', 'ioredis@6.0.0', ...tools].join(' ');
    const { err } = await project.sh(`npm install --no-audit --no-fund ${packages}`);
    expect(err).not.toContain('ERESOLVE');
    expect(existsSync(project.path('node_modules/@prisma'))).toBe(false);
  }

  /** The guards, the columns of the table, and whether the objects are there. */
  async function database() {
    const { pool } = project.database;
    const { rows } = await pool.query(
      `SELECT to_regnamespace('fenced_lock') IS NOT NULL AS objects, ARRAY(SELECT attname::text FROM pg_attribute
         WHERE attrelid = 'stock'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS columns, ARRAY(
         SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'stock'::regclass AND tgname LIKE 'zzz%' ORDER BY 1) AS triggers`,
    );
    return rows[0];
  }
  const FENCED = {
    objects: true,
    columns: ['id', 'quantity', 'fence'],
    triggers: ['zzz_fenced_lock_guard', 'zzz_fenced_lock_guard_truncate'],
  };
  const BARE = { objects: true, columns: ['id', 'quantity'], triggers: [] };

  test('has every command that asks servers', async () => {
    await install();
    await project.database.pool.query(TABLE);
    await project.sh('fenced-lock sql --table stock > objects.sql');
    await project.database.pool.query(project.read('objects.sql'));
    expect(await project.complaints()).toEqual([]);
    for (const command of ['ls', 'unlock stock:1', 'gc', 'history stock:1']) {
      expect(JSON.parse((await project.fencedLock(`${command} --json`)).out)).toMatchObject({ ok: true });
    }
    const looked = await project.sh(`
      fenced-lock board --port 0 > said & board=$!
      until grep -q http said; do kill -0 $board; sleep 0.1; done
      node -e 'fetch(process.argv[1]).then(async (page) => console.log(page.status, await page.text()))' $(grep -o 'http[^ ]*' said)
      kill $board`);
    expect(looked.out).toMatch(/^200 [\s\S]*<title>Locks<\/title>/);
  }, 120_000);

  test.each([
    { name: 'dbmate', version: '2.36.0', down: 'dbmate down' },
    { name: 'node-pg-migrate', version: '9.0.0', down: 'node-pg-migrate down' },
  ])(
    'migrates by $name as the page says, and back',
    async ({ name, version, down }) => {
      await install(`${name}@${version}`);
      await project.database.pool.query(TABLE);
      // This server has no TLS, and perhaps no pg_dump beside it.
      const settings = 'export DATABASE_URL="$DATABASE_URL?sslmode=disable" DBMATE_NO_DUMP_SCHEMA=true';
      await project.sh(`${settings}\n${said(name, 'sh')}`);
      expect(await database()).toEqual(FENCED);
      expect(await project.complaints()).toEqual([]);
      await project.sh(`${settings}\n${down}`);
      expect(await database()).toEqual(BARE);
    },
    120_000,
  );

  test.each([
    { kit: '0.31.11', orm: '0.45.4' },
    { kit: '1.0.0-rc.5', orm: '1.0.0-rc.5' },
  ])(
    'migrates by drizzle-kit $kit as the page says, and its push leaves the fence alone',
    async ({ kit, orm }) => {
      await install(`drizzle-kit@${kit}`, `drizzle-orm@${orm}`);
      const configure = (more: string) =>
        project.write(
          'drizzle.config.ts',
          `export default { dialect: 'postgresql', schema: './schema.ts', ${more}
           dbCredentials: { url: process.env.DATABASE_URL } };`,
        );
      configure('');
      project.write('schema.ts', said('Drizzle', 'ts'));
      const isOne = kit.startsWith('1.');
      const commands = said('Drizzle', 'sh');
      await project.sh(isOne ? commands.replace('_fenced_lock.sql', '_fenced_lock/migration.sql') : commands);
      expect(await database()).toEqual(FENCED);
      expect(await project.complaints()).toEqual([]);
      await project.database.pool.query('INSERT INTO stock (id, quantity) VALUES (1, 1)');
      if (isOne) {
        await expect(project.sh('drizzle-kit push')).rejects.toThrow(/data loss\W+schema\W+fenced_lock/i);
        configure(/schemaFilter: .*\]/.exec(PAGE)?.[0].concat(',') ?? '');
      }
      const note = said('Drizzle', 'ts').replace('quantity:', "note: integer('note'),\n  quantity:");
      project.write('schema.ts', note);
      await project.sh('drizzle-kit push');
      expect(await database()).toEqual({ ...FENCED, columns: [...FENCED.columns, 'note'] });
      expect(await project.complaints()).toEqual([]);
    },
    120_000,
  );
});
