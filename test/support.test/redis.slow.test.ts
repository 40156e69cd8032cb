import { existsSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { describeWithRedis } from '../support/redis-suite.js';
import { NotSupervised, redisUnavailable, ServerUnavailable, startRedis } from '../support/servers/index.js';

beforeEach(() => void vi.stubEnv('REDIS_URL', ''));
afterEach(() => void vi.unstubAllEnvs());

describeWithRedis('startRedis', (redis) => {
  let client: Redis;

  beforeEach(() => {
    client = new Redis(redis().url);
    client.on('error', () => {});
  });
  afterEach(() => client.disconnect());

  test('frozen it answers nobody; thawed it goes on with its data', async () => {
    await client.set('key', 'kept');
    redis().freeze();
    const answer = client.get('key');
    expect(await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 200, 'silence'))])).toBe('silence');
    redis().thaw();
    expect(await answer).toBe('kept');
  });

  test('stopped, also twice and frozen, it leaves no process and no directory', async () => {
    const other = await startRedis();
    other.freeze();
    await Promise.all([other.stop(), other.stop()]);
    expect(() => process.kill(other.pid ?? 0, 0)).toThrow('ESRCH');
    expect(existsSync(other.dir ?? '')).toBe(false);
  });

  test('REDIS_URL wins: shared, and no power over it', async () => {
    vi.stubEnv('REDIS_URL', redis().url);
    const external = await startRedis();
    expect(external).toMatchObject({
      kind: 'REDIS_URL',
      supervised: false,
      url: redis().url,
      version: redis().version,
    });
    expect(() => external.freeze()).toThrow(NotSupervised);
    await expect(external.killHard()).rejects.toThrow('not supervised');
    await external.stop();
    expect(await client.ping()).toBe('PONG');
  });
});

describe('without a Redis on PATH and without Docker', () => {
  beforeEach(() => {
    vi.stubEnv('PATH', '/nowhere');
    vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1');
  });

  test('the error says how to get one', async () => {
    await expect(startRedis()).rejects.toThrow(ServerUnavailable);
    expect(await redisUnavailable()).toContain('apt-get install redis-server');
  });

  test('the emulator is used only if allowed, and is called so', async () => {
    const server = await startRedis({ allowEmulator: true });
    const client = new Redis(server.url);
    expect(server.kind).toBe('emulator');
    expect(await client.eval("return redis.call('INCR', KEYS[1])", 1, 'counter')).toBe(1);
    client.disconnect();
    await server.stop();
    expect(existsSync(server.dir ?? '')).toBe(false);
  });
});
