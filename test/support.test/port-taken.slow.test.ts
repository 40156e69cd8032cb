import { afterEach, beforeEach, expect, inject, test, vi } from 'vitest';
import { freePort } from '../../src/addons/testing/servers/free-port.js';
import { startPostgres, startRedis } from '../support/servers/index.js';

vi.mock('../../src/addons/testing/servers/free-port.js', async (original) => ({
  freePort: vi.fn((await original<typeof import('../../src/addons/testing/servers/free-port.js')>()).freePort),
}));

beforeEach(() => {
  vi.stubEnv('DATABASE_URL', '');
  vi.stubEnv('REDIS_URL', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const servers: Array<[string, typeof startPostgres | typeof startRedis]> = [['Postgres', startPostgres]];
if (inject('redis').url !== undefined) servers.push(['Redis', startRedis]);

test.each(servers)(
  '%s takes another port if somebody was faster, and does not mistake them for itself',
  async (_, start) => {
    const first = await start();
    vi.mocked(freePort).mockResolvedValueOnce(first.port);
    const second = await start();
    expect(second.port).not.toBe(first.port);
    expect(second.pid).not.toBe(first.pid);
    await Promise.all([first.stop(), second.stop()]);
  },
);
