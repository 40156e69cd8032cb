import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { expect, inject, test } from 'vitest';
import { createBoard, toNodeListener } from '../../../src/addons/board/index.js';
import { chromiumPath, NO_CHROMIUM, startChromium } from '../../support/chromium.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { Shop } from '../../support/shop.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

declare const document: {
  querySelector(selector: string): { readonly textContent: string | null } | null;
  readonly documentElement: { readonly scrollWidth: number };
};
declare const window: { readonly innerWidth: number };

interface Violation {
  readonly id: string;
  readonly nodes: ReadonlyArray<{ readonly html: string }>;
}

describeWithRedis('the page in an outage, in a real browser', (redis) => {
  if (chromiumPath() === undefined) {
    test.skip(NO_CHROMIUM, () => {});
    return;
  }
  const shop = new Shop(() => ({
    postgres: inject('postgres').app,
    admin: inject('postgres').admin,
    redis: redis().url,
  }));

  test.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)(
    'says as of when its data is, in an open key too, and can be read, %s at %i px',
    async (scheme, width) => {
      const { prisma } = shop.client({ keyPrefix: `outage-${scheme}:`, commandTimeout: 300, name: 'web-1' });
      const handle = await prisma.$lock('import:nightly');
      const board = createBoard(prisma, {
        refreshInterval: 100,
        allowForceRelease: true,
        hosts: ['127.0.0.1'],
      });
      const server = createServer(toNodeListener(board)).listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      const browser = await startChromium();
      try {
        const page = await browser.newPage();
        // axe is run by a function of its text, which the policy of the page forbids to others.
        await page.setBypassCSP(true);
        await page.setViewport({ width, height: 900 });
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
        const reads = (selector: string, text: string) =>
          page.waitForFunction(
            (selector, text) => document.querySelector(selector)?.textContent?.includes(text),
            {},
            selector,
            text,
          );
        const check = async () => {
          const violations = await page.evaluate(async (source) => {
            if (!('axe' in window)) new Function(source)();
            const { axe } = window as unknown as {
              axe: { run(options: object): Promise<{ violations: Violation[] }> };
            };
            const found = await axe.run({ resultTypes: ['violations'] });
            return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
          }, AXE);
          expect(violations).toEqual([]);
          expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBe(0);
        };
        await reads('#postgres', new URL(inject('postgres').app).pathname);
        await reads('#rows', 'import:nightly');
        await redis().freeze();
        await reads('#link', 'Connected, but the data is old: as of ');
        await reads('#rows', '?');
        await check();
        await page.click('.open');
        await reads('dialog .banner', 'as of ');
        await reads('dialog dl', 'unknown');
        await check();
        await redis().thaw();
        await page.waitForFunction(() => document.querySelector('#link')?.textContent === 'Live');
        await reads('dialog dl', 'unless it is renewed');
        await page.waitForFunction(() => document.querySelector('dialog .banner')?.textContent === '');
      } finally {
        await redis().thaw();
        await browser.close();
        server.closeAllConnections();
        server.close();
      }
      await handle.release().catch(() => {});
    },
    60_000,
  );
});
