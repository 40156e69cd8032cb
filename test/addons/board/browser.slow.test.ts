import { randomUUID } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type BoardOptions, createBoard, toNodeListener } from '../../../src/addons/board/index.js';
import { StaleTokenError } from '../../../src/index.js';
import { namesOf } from '../../../src/redis/names.js';
import { HOSTILE, isHarmless } from '../../cli/operator.js';
import { chromiumPath, NO_CHROMIUM, startChromium } from '../../support/chromium.js';
import { eventually } from '../../support/eventually.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { Shop, type ShopClient } from '../../support/shop.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The part of a browser's names that the functions below use there: the project itself is compiled without them. */
interface PageElement {
  textContent: string | null;
  readonly localName: string;
  readonly firstElementChild: PageElement | null;
  readonly scrollWidth: number;
  readonly clientWidth: number;
}
declare const document: {
  readonly activeElement: PageElement | null;
  readonly documentElement: PageElement;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): { readonly length: number };
};
declare const window: {
  readonly innerWidth: number;
  readonly axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
};
/** What somebody may have called a key in order to deceive or to break the page. */
const KEYS: ReadonlyArray<readonly [what: string, key: string]> = [
  ...HOSTILE,
  ['markup', '<img src=x onerror="document.title=\'broken\'">'],
  ['a script', '</bdi><script>document.title="broken"</script>'],
  ['an entity', '&lt;b&gt;'],
  ['marks upon marks', `Z${'\u0301'.repeat(200)}`],
  ['letters from the right', 'שלום:1'],
  ['512 bytes that break nowhere', 'W'.repeat(512)],
  ['a name of every object', '__proto__'],
  ['line separators', 'a\u2028b\u2029c'],
];
const MAY_TAKE = { allowForceRelease: true, hosts: ['127.0.0.1'] };

interface Look extends BoardOptions {
  readonly width?: number;
  readonly scheme?: 'light' | 'dark';
}

describeWithRedis('the page, in a real browser', (redis) => {
  if (chromiumPath() === undefined) {
    test.skip(NO_CHROMIUM, () => {});
    return;
  }
  const shop = new Shop(() => ({
    postgres: inject('postgres').app,
    admin: inject('postgres').admin,
    redis: redis().url,
  }));
  const servers: Server[] = [];
  let browser: Browser;
  let prefixes = 0;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(async () => {
    await browser?.close();
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  function client(options: Parameters<Shop['client']>[0] = {}): { prisma: ShopClient; keyPrefix: string } {
    const keyPrefix = `page-${process.pid}-${prefixes++}:`;
    return { prisma: shop.client({ keyPrefix, unsetKeyParts: 'allow', ...options }).prisma, keyPrefix };
  }

  /** A write of this process is refused as stale. */
  function refuse(key: string, model: string): void {
    const error = new StaleTokenError(key, 7734n, model, { fence: 7755n });
    channel('tracing:fenced-lock:transaction:error').publish({ error });
  }
  async function enterQueue(keyPrefix: string, key: string, names: readonly string[]): Promise<void> {
    const { queue } = namesOf(keyPrefix, key);
    await shop.redis().rpush(queue, ...names.map((name) => `${randomUUID()} ${randomUUID()} ${name}`));
    await shop.redis().pexpire(queue, 60_000);
  }

  /** A page, and what went wrong in it. */
  async function open(prisma: ShopClient, { width = 1280, scheme = 'light', ...options }: Look = {}) {
    const board = createBoard(prisma, { basePath: '/admin/locks', refreshInterval: 200, ...options });
    const asked: string[] = [];
    const listener = toNodeListener(board);
    const proxy = { isDown: false };
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      if (proxy.isDown) response.writeHead(502).end();
      else listener(request, response);
    }).listen(0, '127.0.0.1');
    servers.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/locks`);
    /** Until what the selector finds has this text. */
    const reads = (selector: string, text: string) =>
      page.waitForFunction(
        (selector, text) => document.querySelector(selector)?.textContent?.includes(text),
        {},
        selector,
        text,
      );
    await reads('#link', 'Live');
    return { page, problems, board, asked, proxy, reads };
  }

  const overflowOf = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

  async function checkAccess(page: Page, state: string): Promise<void> {
    const violations = await page.evaluate(async (source) => {
      if (!('axe' in window)) new Function(source)();
      const found = await window.axe.run({ resultTypes: ['violations'] });
      return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    }, AXE);
    expect([state, violations, await overflowOf(page)]).toEqual([state, [], 0]);
  }

  test.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)(
    'has no violation that axe knows, %s at %i px: empty, with keys, with a dialog, and in an outage of Redis',
    async (scheme, width) => {
      const { prisma, keyPrefix } = client({ commandTimeout: 300, name: 'web-1' });
      const { page, problems, reads } = await open(prisma, { width, scheme, ...MAY_TAKE });
      // axe is run by a function of its text, which the policy of the page forbids to others.
      await page.setBypassCSP(true);
      await page.reload();
      await reads('#health strong', 'All is well');
      await checkAccess(page, 'empty');
      const keys = ['stock:1', 'a key: with spaces', 'k'.repeat(400)];
      const handles = await Promise.all(keys.map((key) => prisma.$lock(key, { leaseTime: 60_000 })));
      await page.waitForFunction(() => document.querySelectorAll('.open').length === 3);
      // Sentences are longer than the page is wide, and so may a key be.
      const text = 'The row of Stock carries the fencing token 7755, above 7734, the token of the lock. '.repeat(3);
      for (const key of keys) channel('fenced-lock:lease-lost').publish({ key, error: new Error(text) });
      for (const key of keys) refuse(key, 'Stock');
      await page.waitForFunction(() => document.querySelectorAll('#happened .event').length === 6);
      await checkAccess(page, 'with keys and events');
      await enterQueue(
        keyPrefix,
        'stock:1',
        Array.from({ length: 30 }, (_, at) => `web-${at}.shop.example:4711`),
      );
      await page.select('#order', 'waiting');
      await page.waitForFunction(() => document.querySelector('.open')?.textContent === 'stock:1');
      await page.click('.open');
      await reads('#waiters', 'and 5 more');
      await page.waitForSelector('#turns time');
      await checkAccess(page, 'with a dialog');
      expect(problems).toEqual([]);
      await redis().freeze();
      await reads('#link', 'Connected, but the data is old: as of ');
      await reads('#rows', '?');
      await reads('#old', 'as of ');
      await reads('#facts', 'unknown');
      await checkAccess(page, 'an open key in an outage');
      await page.keyboard.press('Escape');
      await checkAccess(page, 'in an outage');
      await page.click('.open');
      await redis().thaw();
      await page.waitForFunction(() => document.querySelector('#link')?.textContent === 'Live');
      await reads('#facts', 'unless it is renewed');
      await page.waitForFunction(() => document.querySelector('#old')?.textContent === '');
      await Promise.all(handles.map((handle) => handle.release().catch(() => {})));
      await page.close();
    },
    60_000,
  );

  test('shows what others called a key as text, with all of it visible, whatever it is', async () => {
    const { prisma, keyPrefix } = client();
    const handles = await Promise.all(KEYS.map(([, key]) => prisma.$lock(key)));
    const names = KEYS.map(([, key]) => key);
    // The option `name` refuses them, but other software may write to Redis.
    const last = names.at(-1) ?? '';
    // An entry that is longer than one of this package ends what is read.
    const short = names.filter((name) => Buffer.byteLength(name) < 150);
    await enterQueue(keyPrefix, last, short);
    const { page, problems, asked } = await open(prisma, { width: 360 });
    for (const name of names) refuse(name, name);
    await page.waitForFunction((count) => document.querySelectorAll('.open').length === count, {}, KEYS.length);
    const textsOf = (selector: string) =>
      page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent ?? ''));
    const shown = await textsOf('.open');
    // Nothing that is hidden or reorders is left, and every key is another text.
    for (const text of shown) expect(isHarmless(text), text).toBe(true);
    expect(new Set(shown).size).toBe(KEYS.length);
    const isolated = await page.$$eval('.open', (buttons) =>
      buttons.every(({ firstElementChild }) => firstElementChild?.localName === 'bdi'),
    );
    expect(isolated).toBe(true);
    for (const button of await page.$$('.open')) {
      await button.click();
      await page.waitForSelector('dialog[open]');
      // None is allowed.
      expect(await (await page.$('#take'))?.isVisible()).toBe(false);
      expect(await page.$eval('dialog', (dialog) => dialog.scrollWidth <= dialog.clientWidth + 1)).toBe(true);
      await page.keyboard.press('Escape');
    }
    // The order of the rows may change meanwhile, and the names of who waits may come behind the key.
    await (await page.waitForSelector('tr:has(td.warning) .open'))?.click();
    await page.waitForFunction((count) => document.querySelectorAll('#waiters li').length === count, {}, short.length);
    const places = await textsOf('#waiters li');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelectorAll('#happened .event').length === 10);
    expect(await textsOf('#figures div')).toContain(`stale writes refused\u00A0*${KEYS.length}`);
    for (const text of [...places, ...(await textsOf('#happened li'))]) expect(isHarmless(text), text).toBe(true);
    const made = await textsOf('main img, main script, dialog img, dialog script');
    expect({ title: await page.title(), made, overflow: await overflowOf(page), problems }).toEqual({
      title: 'Locks',
      made: [],
      overflow: 0,
      problems: [],
    });
    expect(asked.every((path) => path.startsWith('/admin/locks'))).toBe(true);
    await Promise.all(handles.map((handle) => handle.release()));
    await page.close();
  });

  test('is used by keyboard: a key is opened, taken after a confirmation, and the focus comes back', async () => {
    const { prisma } = client({ name: 'web-1' });
    const handle = await prisma.$lock('stock:1');
    const [holder] = handle.toJSON().holders;
    const { page, reads } = await open(prisma, MAY_TAKE);
    await page.waitForSelector('.open');
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
    const tabTo = async (text: string) => {
      for (let presses = 0; (await focused()) !== text; presses++) {
        expect(presses).toBeLessThan(20);
        await page.keyboard.press('Tab');
      }
    };
    /** Answers the question, and resolves to it. */
    const asked = async (answer: 'accept' | 'dismiss') => {
      const question = new Promise<string>((resolve) => {
        page.once('dialog', (dialog) => void dialog[answer]().then(() => resolve(dialog.message())));
      });
      await page.keyboard.press('Enter');
      return await question;
    };
    await tabTo('stock:1');
    await page.keyboard.press('Enter');
    await tabTo('Force release …');
    expect(await asked('dismiss')).toMatch(`Take this key from web-1 (${holder})?\n\nNo transaction of it is open`);
    expect((await prisma.$locks.inspect('stock:1')).holder).toBe(holder);
    await asked('accept');
    await reads('#said', 'was taken');
    expect(await focused()).toBe('Force release …');
    expect((await prisma.$locks.inspect('stock:1')).holder).toBeUndefined();
    await reads('#facts', 'free');
    // There is nothing to take, and nothing to ask.
    await page.keyboard.press('Enter');
    await reads('#said', 'Nobody has this key');
    await page.keyboard.press('Escape');
    expect(await page.$('dialog[open]')).toBeNull();
    await page.close();
  });

  test('says that its server is away, and connects again by itself, also where a proxy has answered for it', async () => {
    const { page, board, proxy, asked, reads } = await open(client().prisma);
    board.close();
    await reads('#link', 'does not answer');
    await reads('#link', 'Live');
    proxy.isDown = true;
    const before = asked.length;
    board.close();
    // The browser gives up after this answer.
    await eventually('it has asked', async () => asked.length > before);
    await page.click('#pause');
    await reads('#link', 'does not answer');
    proxy.isDown = false;
    await reads('#link', 'Paused');
    await page.click('#pause');
    await reads('#link', 'Live');
    await page.close();
  });
});
