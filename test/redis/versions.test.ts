import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const OLDEST = '6.2.0';

/** What is sent from src/redis; the rest is called by scripts. */
const SENT = ['EVAL', 'EVALSHA', 'SCAN', 'SUBSCRIBE', 'UNSUBSCRIBE', 'PING'];

/** Sharded pub/sub, which a Redis before 7 has not got, is chosen only where the server is known to have it. */
const SHARDED = /is_sharded\(\w+\) and '\w+' or /g;

/** The commands that the scripts call under their own names. */
function called(): string[] {
  const files = readdirSync(join(ROOT, 'lua'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.lua$/.test(name),
  );
  const text = files
    .map((name) => readFileSync(join(ROOT, 'lua', name), 'utf8'))
    .join('\n')
    .replaceAll(SHARDED, '');
  const calls = [...text.matchAll(/redis\.p?call\('(\w+)'(?:, '(NUMSUB)')?/g)];
  return [...new Set(calls.map(([, verb, part = '']) => `${verb} ${part}`.trimEnd()))];
}

describeWithShop('Redis 6.2', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(inject('redis').url as string);
  });
  afterAll(() => admin.disconnect());

  const used = [...SENT, ...called()].toSorted();

  test('has every command that is used, as the server itself says', async (context) => {
    const docs = (name: string) =>
      admin.call('COMMAND', 'DOCS', name.replace('PUBSUB ', 'PUBSUB|')) as Promise<unknown[]>;
    if ((await docs('GET').catch(() => [])).length === 0) context.skip('this server has no COMMAND DOCS');
    expect(used.length).toBeGreaterThan(15);
    for (const name of used) {
      const since = /"since",\s*"([\d.]+)"/.exec(JSON.stringify(await docs(name)))?.[1];
      expect(newer(since ?? '99', OLDEST), name).toBe(false);
    }
  });
});

function newer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}
