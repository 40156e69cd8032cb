import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { requireRedis } from '../support/redis-suite.js';
import { freePort } from '../support/servers/index.js';
import { describeWithShop } from '../support/shop.js';
import { findings, notOk, Patient } from './patient.js';
import type { Ran } from './project.js';
import { rewritingProxy } from './rewriting-proxy.js';

describeWithShop('doctor, of Redis', () => {
  const patient = new Patient();
  const redis = requireRedis();
  const look = async (url: string) => {
    const ran = await patient.doctor(patient.url, '--redis-url', url);
    return { ...ran, found: findings(ran).filter(({ server }) => server === 'redis') };
  };
  const ofRedis = (ran: Ran) => notOk(ran).filter(({ server }) => server === 'redis');

  async function configured<T>(set: string[], back: string[], work: () => Promise<T>): Promise<T> {
    const admin = new Redis(redis().url);
    const [command = '', ...args] = set;
    const [undo = '', ...undoArgs] = back;
    try {
      await admin.call(command, ...args);
      return await work();
    } finally {
      await admin.call(undo, ...undoArgs);
      admin.disconnect();
    }
  }

  test('nothing is found in a healthy server', async () => {
    const ran = await look(redis().url);
    expect(ofRedis(ran)).toEqual([]);
    expect(ran.found.map(({ check }) => check)).toEqual(['version', 'role', 'eviction', 'persistence', 'replicas']);
  });

  test('a read-only replica is a fault', async () => {
    const port = String(await freePort());
    const ran = await configured(['REPLICAOF', '127.0.0.1', port], ['REPLICAOF', 'NO', 'ONE'], () => look(redis().url));
    expect(ofRedis(ran)).toMatchObject([{ check: 'role', status: 'fault' }]);
    expect(ran.code).toBe(1);
  });

  test.each(['allkeys-lru', 'volatile-ttl'])('the eviction policy %s is a warning', async (policy) => {
    const set = (to: string) => ['CONFIG', 'SET', 'maxmemory-policy', to];
    const ran = await configured(set(policy), set('noeviction'), () => look(redis().url));
    expect(ofRedis(ran)).toMatchObject([{ check: 'eviction', status: 'warning' }]);
    expect(ran.code).toBe(0);
  });

  test('a server older than 6.2 is a fault', async () => {
    const admin = new Redis(redis().url);
    const version = /redis_version:\S+/.exec(await admin.info('server'))?.[0] ?? '';
    admin.disconnect();
    const old = 'redis_version:6.0.1'.padEnd(version.length, '9');
    await using proxy = await rewritingProxy(redis().url, { rewrite: [version, old] });
    const ran = await look(proxy.url);
    expect(ofRedis(ran)).toMatchObject([{ check: 'version', status: 'fault' }]);
  });

  test('a server that is not there is a fault, and the database is looked at all the same', async () => {
    const ran = await look(`redis://:secret-of-doctor@127.0.0.1:${await freePort()}`);
    expect(notOk(ran)).toMatchObject([{ server: 'redis', check: 'connection', status: 'fault' }]);
    expect(ran.out).not.toMatch(/secret-of-doctor|redis:\/\//);
    expect(ran.code).toBe(1);
  });
});
