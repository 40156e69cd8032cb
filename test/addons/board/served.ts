import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { Monitor } from '../../redis/monitor.js';
import { eventually } from '../../support/eventually.js';
import type { ShopClient } from '../../support/shop.js';

/**
 * A board that an application serves: its page, its files, its events while they happen, and a force release from the page
 * alone. Its servers are asked until the viewer has left. `prisma` takes locks that the board shows, under a prefix of its own.
 */
export async function expectServed(origin: string, base: string, prisma: ShopClient, keyPrefix: string): Promise<void> {
  const page = await fetch(`${origin}${base}`);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const script = /src="([^"]+)"/.exec(await page.text())?.[1] ?? '';
  const loaded = await fetch(new URL(script, page.url));
  expect([loaded.status, loaded.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  expect((await fetch(`${origin}${base}/../board.js`)).status).toBe(404);

  const key = `stock:${randomUUID()}`;
  const handle = await prisma.$lock(key);
  const [holder] = handle.toJSON().holders;
  const gone = new AbortController();
  const events = await fetch(`${origin}${base}/events`, { signal: gone.signal });
  expect(events.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  let text = '';
  const decoder = new TextDecoder();
  const reading = (async () => {
    for await (const chunk of events.body ?? []) text += decoder.decode(chunk, { stream: true });
  })().catch(() => {});
  await eventually('the key is told', async () => text.includes(`"key":"${key}"`));
  const token = /"token":"([\w-]{43})"/.exec(text)?.[1] ?? '';
  const force = (headers: Record<string, string>) =>
    fetch(`${origin}${base}/force-release`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-fenced-lock-board': token, ...headers },
      body: JSON.stringify({ key, holder }),
    });
  expect((await force({ origin: 'https://evil.example' })).status).toBe(403);
  const answer = await force({ origin });
  expect([answer.status, await answer.json()]).toEqual([200, { released: true }]);
  await eventually('it is told that the key is free', async () => text.includes(`"key":"${key}","waiting":0`));

  const monitor = await Monitor.start(inject('redis').url as string);
  const scans = async () => (await monitor.about(keyPrefix)).filter(([verb]) => verb === 'scan').length;
  await eventually('the servers are asked for the viewer', async () => (await scans()) > 0);
  gone.abort();
  await reading;
  await eventually('they are not asked any more', async () => {
    const before = await scans();
    await sleep(500);
    return (await scans()) === before;
  });
  monitor.stop();
}
