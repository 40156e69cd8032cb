import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { LockLostError } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { refusedWrite } from '../../support/refused-write.js';
import { applyMigrations, askServer, startPostgres, startRedis } from '../../support/servers/index.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { asked, Operator } from '../operator.js';
import { noTmux, TerminalPane } from './tmux.js';

if (noTmux !== undefined) test.skip(noTmux, () => {});

/** As a terminal is while nobody has taken it over. */
const AS_BEFORE = { other: false, cursor: true, wraps: true };

describeWithShop('top in a terminal', () => {
  const shop = new Shop();

  /** A terminal in which it runs, and has drawn. */
  async function started(operator: Operator, own: Readonly<Record<string, string>> = {}) {
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url as string, ...own };
    const pane = new TerminalPane(env);
    pane.type('echo typed before');
    pane.press('Enter');
    pane.start('top', '--key-prefix', operator.keyPrefix, '--interval', '0.2');
    await pane.screen('it draws', (lines) => /^\d\d:\d\d:\d\dZ {3}\d+ held/.test(lines[0] ?? ''));
    return pane;
  }
  const rows = (lines: readonly string[]) =>
    lines
      .slice(2, -1)
      .filter((line) => line !== '' && !/^(PostgreSQL|Redis) /.test(line))
      .map((line) => line.split(' ')[0]);
  const ended = (pane: TerminalPane) =>
    pane.screen('the shell is back', (lines) => lines.some((line) => line.startsWith('ended with')));

  test.skipIf(noTmux !== undefined)('shows keys as they come and go, sorts and filters them', async () => {
    const operator = new Operator(shop);
    const prisma = operator.client();
    const one = await prisma.$lock('live-order:1');
    await using _other = await prisma.$lock('live-stock:1');
    await using pane = await started(operator);
    expect(pane.modes).toEqual({ other: true, cursor: false, wraps: false });
    const waiting = operator.client().$withLock('live-stock:1', () => {}, { waitTime: 60_000 });
    waiting.catch(() => {});
    pane.press('s');
    await pane.screen('who is waited for comes first', (lines) => rows(lines).join() === 'live-stock:1,live-order:1');
    pane.type('/order');
    await pane.screen('the filter holds', (lines) => rows(lines).join() === 'live-order:1');
    pane.press('Enter', 'Escape');
    await pane.screen('all are back', (lines) => rows(lines).length === 2);
    pane.resize(40, 8);
    // tmux itself shows the last lines of the larger screen first, which have no rows.
    const fits = (lines: readonly string[]) => lines.length === 8 && (lines[7] ?? '').startsWith('up/down');
    await pane.screen('it fits, with its rows', (lines) => fits(lines) && rows(lines).length === 2);
    pane.resize(100, 20);
    await pane.screen('it fits again', (lines) => lines.length === 20 && (lines[19] ?? '').startsWith('up/down'));
    await one.release();
    pane.press('q');
    const lines = await ended(pane);
    expect(lines).toContain('typed before');
    expect(lines).toContain('ended with 0');
    expect(pane.modes).toEqual(AS_BEFORE);
    // What is typed is to be seen again.
    pane.type('echo $((6 * 7))');
    pane.press('Enter');
    await pane.screen('the shell hears', (lines) => lines.includes('42') && lines.some((line) => line.endsWith('7))')));
  });

  test.skipIf(noTmux !== undefined)(
    'names those who wait for the selected key in their order, and counts refused writes',
    async () => {
      const operator = new Operator(shop);
      await using _held = await operator.client({ name: 'web-1' }).$lock('live-named:1');
      const gone = new AbortController();
      for (const name of ['web-2', 'jobs 7']) {
        const prisma = operator.client({ name });
        prisma.$withLock('live-named:1', () => {}, { waitTime: 60_000, signal: gone.signal }).catch(() => {});
        await eventually('it waits', async () => (await prisma.$locks.inspect('live-named:1')).waiters.includes(name));
      }
      await using pane = await started(operator);
      await pane.screen('who is next', (lines) => (lines[2] ?? '').endsWith(' web-1   web-2'));
      pane.press('Down');
      await pane.screen('who waits', (lines) =>
        lines.includes('Waiting for live-named:1, in order: 1 web-2, 2 "jobs 7"'),
      );
      await pane.screen('nothing was refused', (lines) => lines[0]?.includes('   0 refused   ') === true);
      const { id } = await shop.product(10);
      await refusedWrite(operator.client({ name: 'late' }), operator.client(), id, 'live-refused:1');
      const lines = await pane.screen('it was refused', (lines) => lines[0]?.includes('   1 refused   ') === true);
      expect(lines[17]).toMatch(/^Refused \d\d:\d\d:\d\dZ live-refused:1 by late: A row of Stock carries/);
      gone.abort('enough');
      pane.press('q');
      await ended(pane);
    },
  );

  test.skipIf(noTmux !== undefined)('takes the selected key from its holder, but not before a y', async () => {
    const operator = new Operator(shop);
    const prisma = operator.client();
    const [inside, goOn] = [gate(), gate()];
    const working = prisma.$withLock('live-taken:1', async (tx) => {
      await tx.$queryRaw`SELECT 1`;
      inside.open();
      await goOn.opened;
    });
    const outcome = working.catch((error: unknown) => error);
    await inside.opened;
    await using pane = await started(operator);
    await pane.screen('the key is there', (lines) => rows(lines).includes('live-taken:1'));
    pane.press('Down', 'x');
    const asks = (line: string) => line.startsWith('Take live-taken:1 from ');
    const asking = await pane.screen('it asks', (lines) => lines.some(asks));
    expect(asking[asking.findIndex(asks) - 1]).toBe(`PostgreSQL ${asked().postgres}   Redis ${asked().redis}`);
    pane.press('Enter');
    await pane.screen('a no', (lines) => lines[19] === 'Nothing was changed.');
    const { turns } = await prisma.$locks.inspect('live-taken:1');
    pane.press('x');
    await pane.screen('it asks again', (lines) => lines.some(asks));
    pane.press('y');
    await pane.screen('it is taken', (lines) => lines.some((line) => line.startsWith('Unlocked live-taken:1:')));
    await eventually('its token is raised', async () => {
      const now = await prisma.$locks.inspect('live-taken:1');
      return now.turns > turns;
    });
    goOn.open();
    expect(await outcome).toBeInstanceOf(LockLostError);
    pane.press('C-c');
    await ended(pane);
    expect(pane.modes).toEqual(AS_BEFORE);
  });

  test.skipIf(noTmux !== undefined)('leaves a key to a holder that has got it since it asked', async () => {
    const operator = new Operator(shop);
    const prisma = operator.client();
    const shown = await prisma.$lock('live-passed:1');
    await using pane = await started(operator);
    await pane.screen('the key is there', (lines) => rows(lines).includes('live-passed:1'));
    pane.press('Down', 'x');
    await pane.screen('it asks', (lines) => lines.some((line) => line.startsWith('Take live-passed:1 from ')));
    await shown.release();
    await using bystander = await prisma.$lock('live-passed:1');
    pane.press('y');
    const says = 'live-passed:1 was passed on to ';
    await pane.screen('it was passed on', (lines) => lines.some((line) => line.startsWith(says)));
    await bystander.$transaction((tx) => tx.$queryRaw`SELECT 1`);
    pane.press('C-c');
    await ended(pane);
  });

  test.skipIf(noTmux !== undefined)('outlives a restart of either server, and takes keys afterwards', async () => {
    const operator = new Operator(shop);
    const [postgres, redis] = [await startPostgres(), await startRedis()];
    shop.closeLater(() => Promise.all([postgres.stop(), redis.stop()]));
    await applyMigrations(postgres.url);
    await using pane = await started(operator, { DATABASE_URL: postgres.url, REDIS_URL: redis.url });
    const isWell = (lines: readonly string[]) =>
      /^\d\d:/.test(lines[0] ?? '') && !lines.join(' ').includes('cannot be asked');
    const lease = `${operator.keyPrefix}{live-again:1}:lease`;
    const holder = randomUUID();
    for (const [name, server] of [
      ['Redis', redis],
      ['PostgreSQL', postgres],
    ] as const) {
      await server.killHard();
      const says = new RegExp(` ${name} \\S+ cannot be asked since \\d\\d:\\d\\d:\\d\\dZ: .*ECONNREFUSED`);
      const lines = await pane.screen(`${name} is missed`, (lines) => says.test(lines.join(' ')));
      expect(lines[0]).toMatch(/^as of \d\d:\d\d:\d\dZ {3}/);
      await server.start();
      await pane.screen(`${name} is back`, isWell);
      // Without a key there is nothing to ask Postgres about, and Redis comes back empty.
      await askServer(redis.url, 'SET', lease, `${holder} 600000`, 'PX', '600000');
      await pane.screen('a key is there', (lines) => rows(lines).includes('live-again:1'));
    }
    pane.press('Down', 'x');
    await pane.screen('it asks', (lines) => lines.some((line) => line.startsWith('Take live-again:1 from ')));
    pane.press('y');
    await eventually('it is taken', async () => (await askServer(redis.url, 'EXISTS', lease)) === 0);
    pane.press('q');
    expect(await ended(pane)).toContain('ended with 0');
  });

  test.skipIf(noTmux !== undefined)('that is ended from outside gives the terminal back', async () => {
    await using pane = await started(new Operator(shop));
    process.kill(pane.pid, 'SIGTERM');
    await ended(pane);
    expect(pane.modes).toEqual(AS_BEFORE);
  });
});
