import { describe, expect, inject, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { createDatabase } from './database.js';
import { Operator } from './operator.js';
import { type Project, project, steady } from './project.js';

// What each command says in its few states, held as it is: `vitest -u` after a change that is meant.

const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Stock {\n  id Int @id\n}\n';
const shop = (files: Record<string, string> = {}) => project({ 'prisma/schema.prisma': SCHEMA, ...files });

/** Runs command lines one after the other, and returns what they said; SQL of the package is left out. */
async function said(here: Pick<Project, 'run'>, ...lines: string[]): Promise<string> {
  const told: string[] = [];
  for (const line of lines) {
    const { code, out, err } = await here.run(...line.split(' '));
    told.push(steady(`$ fenced-lock ${line}\n${out}${err}[${code}]`));
  }
  return told.join('\n\n');
}

describe('the commands that write files say', () => {
  test('what init and upgrade have written, and what comes next', async () => {
    const pushed = await said(shop(), 'upgrade', 'init', 'init', 'upgrade --json');
    const first = { 'prisma/migrations/20200101000000_stock/migration.sql': 'CREATE TABLE "Stock" (id int);\n' };
    const migrated = await said(shop(first), 'init --role web', 'init --role web', 'init --role web --role jobs');
    expect(`${pushed}\n\n${migrated}`).toMatchSnapshot();
  });

  test('what add-fence and remove-fence change', async () => {
    const here = shop();
    const before = await said(here, 'add-fence Stock', 'init', 'add-fence Stock --dry-run');
    const { run } = here;
    await run.call(here, 'add-fence', 'Stock');
    const after = await said(
      here,
      'add-fence Stock',
      'add-fence Stock --guard none',
      'remove-fence Stock',
      'remove-fence Stock --json',
    );
    expect(`${before}\n\n${after}`).toMatchSnapshot();
  });

  test('what is wrong with a command line, and the way to the help', async () => {
    const lines = [
      'ls --bogus',
      'unlock',
      'ls --key-prefix= --json',
      'ls --interval 100',
      'board --port 99999',
      'init --role=',
      'init --role public',
      'gc --older-than 1h',
      'sql --field 1x',
      'mend',
    ];
    expect(await said(shop(), ...lines)).toMatchSnapshot();
  });
});

describeWithShop('the commands that ask servers say', () => {
  const servers = new Shop();
  const operator = () => new Operator(servers, `output-${crypto.randomUUID()}:`);
  const lines = (on: Operator, ...commands: string[]) => said({ run: (...args) => on.run(...args) }, ...commands);

  test('that nobody has a key', async () => {
    const of = operator();
    expect(
      await lines(of, 'ls', 'ls --json', 'ls --filter x', 'unlock stock:never', 'unlock stock:never --dry-run --json'),
    ).toMatchSnapshot();
  });

  test('who has a key, who waits, and what unlock does', async () => {
    const of = operator();
    const [holder, contender] = [of.client({ name: 'web-1' }), of.client({ name: 'web 2' })];
    const key = `stock:${crypto.randomUUID()}`;
    await holder.$withLock(key, () => {});
    const handle = await holder.$lock(key, { leaseTime: 60_000 });
    const [inside, goOn] = [gate(), gate()];
    const work = handle.$transaction(async () => {
      inside.open();
      await goOn.opened;
    });
    const ended = work.catch((error: { code: string }) => error.code);
    await inside.opened;
    const next = contender.$withLock(key, () => 'in');
    await expect.poll(async () => (await holder.$locks.inspect(key)).waiting).toBe(1);
    const asked = await lines(of, 'ls', 'ls --json', `unlock ${key} --dry-run`, `unlock ${key}`);
    const told = asked.replace(/(<s> s {2}1 {2})\d+/, '$1<n>');
    goOn.open();
    expect(await next).toBe('in');
    expect(await ended).not.toBe(undefined);
    const after = await lines(of, `unlock ${key} --json`);
    expect(`${told}\n\n${after}`).toMatchSnapshot();
    await handle.release();
  });

  test('the turns of a key', async () => {
    const prisma = operator().client();
    const here = project({}, { DATABASE_URL: inject('postgres').app });
    const [once, often] = [crypto.randomUUID(), crypto.randomUUID()];
    await prisma.$withLock(once, () => {});
    let token = 0n;
    for (let turns = 0; turns < 18; turns++) token = await prisma.$withLock(often, (_, lock) => lock.token);
    const { json } = await here.run('history', often, '--json');
    expect(json).toMatchObject({ turns: '18', last: { length: 16, 0: { turn: '18', token: String(token) } } });
    expect(
      (await said(here, 'history nobody', `history ${once}`, `history ${often}`)).replaceAll(
        /<id> {2}\d+/g,
        '<id>  <n>',
      ),
    ).toMatchSnapshot();
  });

  test('what is wrong with a URL and with a server, and what to do; and never a secret', async () => {
    const { app } = inject('postgres');
    const redis = inject('redis').url ?? '';
    const gone = ['postgresql://u:secret@127.0.0.1:1/none', 'redis://:secret@127.0.0.1:1'] as const;
    const urls: ReadonlyArray<readonly [database: string, redis: string]> = [
      ['', redis],
      [app, ''],
      [gone[0], redis],
      [app, gone[1]],
      [Object.assign(new URL(app), { pathname: '/not_there' }).href, redis],
      ['mysql://u:secret@h/d', redis],
      ['prisma://secret', redis],
      ['postgresql://u:secret%@127.0.0.1:1/d', redis],
      ['postgresql://u:secret@h/dREDIS_URL=redis://:secret@h', redis],
      [app, 'http://secret.host'],
      [app, '"redis://:secret@127.0.0.1'],
      [app, 'redis://:se#cret@127.0.0.1'],
    ];
    const told: string[] = [];
    for (const [DATABASE_URL, REDIS_URL] of urls) {
      const here = project({}, { DATABASE_URL, REDIS_URL });
      told.push(await said(here, 'ls'));
    }
    for (const [DATABASE_URL, REDIS_URL] of [[app, ''], gone, [gone[0], redis], ['prisma://secret', 'http://secret']]) {
      told.push(await said(project({}, { DATABASE_URL, REDIS_URL }), 'doctor --schema none'));
    }
    expect(told.join('\n\n')).not.toMatch(/cret/);
    expect(told.join('\n\n')).toMatchSnapshot();
  });

  test('what gc deletes', async () => {
    await using database = await createDatabase();
    const here = project({ 'prisma/schema.prisma': SCHEMA }, { DATABASE_URL: database.url });
    const without = await said(here, 'gc');
    await database.pool.query((await here.run('sql')).out);
    const told = await said(here, 'gc', 'gc --dry-run --older-than 2w', 'gc --run job:1', 'gc --json');
    expect(`${without}\n\n${told}`).toMatchSnapshot();
  });
});
