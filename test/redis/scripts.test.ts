import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { luaModule } from '../../scripts/generate/lua.js';
import { LockUnavailableError } from '../../src/base/errors.js';
import { namesOf } from '../../src/redis/names.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { RedisStore } from '../../src/redis/store.js';
import type { Claim } from '../../src/waiting/store.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { gate, Shop } from '../support/shop.js';
import { Actor, holderOf, leaseName, PREFIX, someKey } from '../waiting/actors.js';
import { Monitor } from './monitor.js';

const LUA = new URL('../../lua', import.meta.url);

describe('the module that is made of lua/', () => {
  test.each([
    ['a key that the header does not name', 'release.lua', 'KEYS[2]', 'KEYS[3]', 'the header names 2 KEYS'],
    ['an argument that the script does not use', 'extend.lua', 'leaseTime', 'leaseTime more', 'names 7 ARGV'],
    ['a header without its reply', 'acquire.lua', '-- REPLY', '-- RETURNS', 'no line "-- REPLY'],
    ['a reply of no known type', 'release.lua', '-- REPLY integer', '-- REPLY table', 'REPLY must begin with'],
  ])('refuses %s', (_, name, from, to, complaint) => {
    const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-scripts-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(LUA, folder, { recursive: true });
    const text = readFileSync(join(folder, name), 'utf8');
    expect(text).toContain(from);
    writeFileSync(join(folder, name), text.replaceAll(from, to));
    expect(() => luaModule(pathToFileURL(`${folder}/`))).toThrow(complaint);
  });
});

describeWithRedis('the scripts', (redis) => {
  let admin: Redis;
  let store: RedisStore;
  let client: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
    client = new Redis(redis().url);
    store = new RedisStore(client, { keyPrefix: PREFIX, commandTimeout: 5_000 }, () => {});
  });
  afterAll(async () => {
    await store.close();
    admin.disconnect();
    client.disconnect();
  });

  const claimOf = (key: string): Claim => ({ key, holder: randomUUID(), leaseTime: 60_000 });
  const everything = async () => {
    const keys = await admin.keys('*');
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await admin.dump(key)])));
  };

  test('a server that forgot the scripts is sent each of them again', async () => {
    const monitor = await Monitor.start(redis().url);
    const claims = [claimOf(someKey()), claimOf(someKey()), claimOf(someKey())] as const;
    const [claim] = claims;
    await admin.script('FLUSH');
    for (const each of claims) expect(await store.acquire(each)).toMatchObject({ taken: true });
    const together = [...claims, claimOf(claim.key)];
    expect(await store.extend(together)).toEqual(['extended', 'extended', 'extended', 'gone']);
    await admin.script('FLUSH');
    // Together, so that each of them is refused.
    expect(await store.extend(together)).toEqual(['extended', 'extended', 'extended', 'gone']);
    await store.release(claim);
    await admin.script('FLUSH');
    await store.release(claim);
    const verbs = (await monitor.about(leaseName(claim.key))).map(([verb, text]) => `${verb} ${nameOf(text)}`);
    expect(verbs).toEqual([
      ...['evalsha acquire', 'eval acquire'],
      // It was asked for twice. A server that lacked one script may lack all.
      ...['eval extend', 'eval extend'],
      ...['evalsha extend', 'evalsha extend', 'eval extend', 'eval extend'],
      ...['eval release', 'evalsha release', 'eval release'],
    ]);
    expect(await admin.exists(leaseName(claim.key))).toBe(0);
    monitor.stop();
  });

  test('a key that one call released is free for the next call, though the server lacked the script', async () => {
    const { app, admin: owner } = inject('postgres');
    const { prisma } = new Shop(() => ({ postgres: app, admin: owner, redis: redis().url })).client();
    const key = someKey();
    for (let tries = 0; tries < 10; tries++) {
      await admin.script('FLUSH');
      await prisma.$withLock(key, () => 1);
      expect(await prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
    }
  });

  test('a script is not sent again for an answer that was given up already', async () => {
    const proxy = await startFaultProxy({ host: redis().host, port: redis().port });
    const monitor = await Monitor.start(redis().url);
    const contender = new Actor({ url: proxy.url(redis().url), commandTimeout: 100 });
    const key = someKey();
    await contender.redis.ping();
    await admin.script('FLUSH');
    proxy.silence('toServer');
    await expect(contender.acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockUnavailableError);
    // The server knows the release again, so only the acquire would be late.
    await admin.script('LOAD', scripts.release.lua);
    proxy.resume();
    await contender.redis.ping();
    await contender.redis.ping();
    const texts = (await monitor.about(key)).filter(([verb]) => verb === 'eval').map(([, text]) => text);
    // That of the release is harmless.
    expect(texts.filter((text) => text?.includes('is_free'))).toEqual([]);
    expect(await admin.exists(leaseName(key))).toBe(0);
    monitor.stop();
    await proxy.close();
  });

  test.each([
    ['braces', 'stock:{1}}{'],
    ['quotes', `stock:'"\`]]--`],
    ['newlines', 'stock:1\r\nSET stolen 1\r\n'],
    ['characters of four bytes', 'stock:🔒🗝️'],
    ['a pattern', 'stock:*?[a-z]'],
    ['what looks like Lua', "stock:']) redis.call('FLUSHALL') --"],
    ['a space at either end', ' stock '],
    ['512 bytes', '🔒'.repeat(128)],
    ['our own names', namesOf(PREFIX, 'stock:1').lease],
  ])('a key with %s touches no other key, and is never in the text of a script', async (_, key) => {
    await admin.flushall();
    for (const other of ['stock:1', 'stock', key, namesOf(PREFIX, 'stock:1').lease, namesOf(PREFIX, `${key}x`).lease]) {
      await admin.set(other, 'a bystander');
    }
    const before = await everything();
    const claim = claimOf(key);
    const monitor = await Monitor.start(redis().url);
    await admin.script('FLUSH');
    const woken = gate();
    const watch = await store.watch(key, () => woken.open());

    expect(await store.acquire(claim)).toMatchObject({ taken: true });
    const { lease } = namesOf(PREFIX, key);
    expect(await everything()).toEqual({ ...before, [lease]: expect.anything() });
    expect(await holderOf(admin, key)).toBe(claim.holder);
    expect(await store.acquire(claimOf(key))).toMatchObject({ taken: false });
    expect(await store.extend([claim])).toEqual(['extended']);
    await store.release(claim);
    await woken.opened;
    expect(await everything()).toEqual(before);

    watch.close();
    const texts = (await monitor.about('')).filter(([verb]) => verb === 'eval');
    expect(texts.map(([, text]) => nameOf(text))).toEqual(['acquire', 'extend', 'release']);
    monitor.stop();
  });
});

/** A monitor shows a line's end as two characters. */
function nameOf(text: string | undefined): string | undefined {
  return Object.values(scripts).find(({ sha1, lua }) => text === sha1 || text === lua.replaceAll('\n', '\\n'))?.name;
}
