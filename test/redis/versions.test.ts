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

/** Since which Redis there is what; of options the ones that are used. */
const SINCE: Readonly<Record<string, string>> = {
  DEL: '1.0.0',
  GETRANGE: '2.4.0',
  LINDEX: '1.0.0',
  LLEN: '1.0.0',
  LPOP: '1.0.0',
  LRANGE: '1.0.0',
  LREM: '1.0.0',
  PING: '1.0.0',
  RPUSH: '1.0.0',
  SET: '1.0.0',
  PUBLISH: '2.0.0',
  SUBSCRIBE: '2.0.0',
  UNSUBSCRIBE: '2.0.0',
  EVAL: '2.6.0',
  EVALSHA: '2.6.0',
  PEXPIRE: '2.6.0',
  PTTL: '2.6.0',
  'SET PX': '2.6.12',
  'PUBSUB NUMSUB': '2.8.0',
  SCAN: '2.8.0',
  TIME: '2.6.0',
  LPOS: '6.0.6',
};

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
  const options = [...text.matchAll(/redis\.p?call\('SET'[^)]*?'([A-Z]+)'/g)].map(([, option]) => `SET ${option}`);
  const names = [...calls.map(([, verb, part = '']) => `${verb} ${part}`.trimEnd()), ...options];
  return [...new Set(names)];
}

describeWithShop('Redis 6.2', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(inject('redis').url as string);
  });
  afterAll(() => admin.disconnect());

  const used = [...SENT, ...called()].toSorted();

  test('has every command that is used', () => {
    expect(used.length).toBeGreaterThan(15);
    expect(used.filter((name) => !(name in SINCE))).toEqual([]);
    for (const name of used) expect(newer(SINCE[name] ?? '', OLDEST), name).toBe(false);
  });

  test('and the server says so itself', async (context) => {
    const docs = (name: string) =>
      admin.call('COMMAND', 'DOCS', name.replace('PUBSUB ', 'PUBSUB|')) as Promise<unknown[]>;
    if ((await docs('GET').catch(() => [])).length === 0) context.skip('this server has no COMMAND DOCS');
    for (const name of used.filter((name) => name !== 'SET PX')) {
      const since = /"since",\s*"([\d.]+)"/.exec(JSON.stringify(await docs(name)))?.[1];
      expect(since, name).toBe(SINCE[name]);
    }
  });
});

function newer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}
