import { randomUUID } from 'node:crypto';
import { stripVTControlCharacters } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { run } from '../../src/cli/program.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

/** `ls --watch` in a terminal of 20 lines, until it is stopped. */
function watch(keyPrefix: string, redisUrl: string, ...args: string[]) {
  const { opened: stopped, open: stop } = gate();
  const seen = { screen: '', errors: '' };
  const code = run(['ls', '--watch', '--interval', '0.2', '--key-prefix', keyPrefix, ...args], {
    cwd: process.cwd(),
    env: { DATABASE_URL: inject('postgres').app, REDIS_URL: redisUrl, NO_COLOR: '1' },
    now: () => new Date(),
    // Each picture is one write.
    stdout: { isTTY: true, rows: 20, write: (text) => (seen.screen = stripVTControlCharacters(text)) },
    stderr: { write: (text) => (seen.errors += text) },
    stopped: () => stopped,
  });
  const shows = (what: string, wanted: (screen: string) => boolean) =>
    eventually(what, async () => wanted(seen.screen) && seen.screen);
  return { seen, code, stop, shows };
}

describeWithShop('ls --watch', () => {
  const shop = new Shop();

  test('shows keys as they come and go, until it is stopped', async () => {
    const keyPrefix = `watch-${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix, name: 'web-1' });
    const { code, stop, shows, seen } = watch(keyPrefix, inject('redis').url as string, '--filter', 'stock');
    await shows('nobody has a key', (screen) => screen.includes('No key matches.'));
    const [stock, order] = [await prisma.$lock('stock:1'), await prisma.$lock('order:1')];
    const screen = await shows('a key is held', (screen) => screen.includes('stock:1  web-1'));
    expect(screen).not.toContain('order:1');
    await Promise.all([stock.release(), order.release()]);
    await shows('it is free again', (screen) => screen.includes('No key matches.'));
    stop();
    expect({ code: await code, errors: seen.errors }).toEqual({ code: 0, errors: '' });
  });

  test('goes on when a server that went away is there again, and says so meanwhile', async () => {
    const keyPrefix = `watch-${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix });
    await using _handle = await prisma.$lock('stock:1');
    const redis = inject('redis').url as string;
    const { hostname: host, port } = new URL(redis);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    onTestFinished(() => proxy.close());
    const { code, stop, shows } = watch(keyPrefix, proxy.url(redis));
    await shows('the key', (screen) => screen.includes('stock:1'));
    await proxy.refuse();
    proxy.reset();
    await shows('the failure, over the last list', (screen) =>
      /Since \S+ the servers cannot be asked.*stock:1/s.test(screen),
    );
    await proxy.refuse(false);
    await shows('the list alone', (screen) => !screen.includes('cannot be asked') && screen.includes('stock:1'));
    stop();
    expect(await code).toBe(0);
  });
});
