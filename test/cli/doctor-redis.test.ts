import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { requireRedis } from '../support/redis-suite.js';
import { freePort, startRedis } from '../support/servers/index.js';
import { describeWithShop } from '../support/shop.js';
import { findings, notOk, Patient } from './patient.js';
import type { Ran } from './project.js';
import { rewritingProxy } from './rewriting-proxy.js';

describeWithShop('doctor, of Redis', () => {
  const patient = new Patient();
  const redis = requireRedis();
  const look = async (url: string, ...args: string[]) => {
    const ran = await patient.doctor(patient.url, '--redis-url', url, ...args);
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
    const seen = ['version', 'role', 'memory', 'eviction', 'scripts', 'wake-ups', 'views'];
    expect(ran.found.map(({ check }) => check)).toEqual(seen);
  });

  test('a read-only replica is a fault', async () => {
    const port = String(await freePort());
    const ran = await configured(['REPLICAOF', '127.0.0.1', port], ['REPLICAOF', 'NO', 'ONE'], () => look(redis().url));
    expect(ofRedis(ran)).toMatchObject([{ check: 'role', status: 'fault' }]);
    expect(ran.code).toBe(1);
  });

  test('an eviction policy is a warning', async () => {
    const set = (to: string) => ['CONFIG', 'SET', 'maxmemory-policy', to];
    const ran = await configured(set('allkeys-lru'), set('noeviction'), () => look(redis().url));
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

  test('a Cluster that serves no keys is a fault', async () => {
    const node = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    onTestFinished(() => node.stop());
    expect(ofRedis(await look(node.url))).toMatchObject([{ check: 'scripts', status: 'fault' }]);
  });

  test('a full memory is a fault, and nobody gets a place to wait in', async () => {
    const ran = await configured(['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0'], () =>
      look(redis().url),
    );
    expect(ofRedis(ran)).toMatchObject([
      { check: 'memory', status: 'fault' },
      { check: 'scripts', status: 'fault', message: expect.stringContaining('OOM') },
    ]);
  });

  test.each([
    ['scripts', '-evalsha', 'fault'],
    ['scripts', 'resetkeys', 'fault'],
    ['scripts', '-rpush', 'fault'],
    // With `wake: 'poll'` they are not needed.
    ['wake-ups', '-publish', 'warning'],
    ['wake-ups', '-subscribe', 'warning'],
  ])('a user who lacks a right for %s (%s) is a %s', async (check, right, status) => {
    const url = Object.assign(new URL(redis().url), { username: 'doctor', password: 'secret-of-doctor' }).href;
    const user = ['ACL', 'SETUSER', 'doctor', 'reset', 'on', '>secret-of-doctor', '+@all', '~*', '&*', right];
    const ran = await configured(user, ['ACL', 'DELUSER', 'doctor'], () => look(url));
    expect(ofRedis(ran)).toMatchObject([{ check, status, remedy: expect.stringContaining('docs/rights.md') }]);
    expect(ran.out).not.toContain('secret-of-doctor');
  });

  test('the key prefix of the application is what its user has rights for', async () => {
    const url = Object.assign(new URL(redis().url), { username: 'doctor', password: 'secret-of-doctor' }).href;
    const names = ['~shop:*', 'resetchannels', '&shop:*'];
    const user = ['ACL', 'SETUSER', 'doctor', 'reset', 'on', '>secret-of-doctor', '+@all', ...names];
    await configured(user, ['ACL', 'DELUSER', 'doctor'], async () => {
      expect(ofRedis(await look(url))).toMatchObject([{ check: 'scripts', status: 'fault' }]);
      expect(ofRedis(await look(url, '--key-prefix', 'shop:'))).toEqual([]);
    });
  });

  test('what swallows messages is a warning, with what to do', async () => {
    const rewrite = ['$7\r\nmessage', '$7\r\nMESSAGE'] as const;
    await using proxy = await rewritingProxy(redis().url, { rewrite });
    const remedy = expect.stringContaining("wake: 'poll'");
    expect(ofRedis(await look(proxy.url))).toMatchObject([{ check: 'wake-ups', status: 'warning', remedy }]);
  });
});
