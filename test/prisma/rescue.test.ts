import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { Rescue } from '../../src/connection/rescue.js';
import { connectionsOf, rescueFactory } from '../../src/prisma/rescue.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('the rescue connection', () => {
  const shop = new Shop();

  test('is another one after a statement that hangs', async () => {
    const rescue = new Rescue(connectionsOf(rescueFactory(new PrismaPg({ connectionString: inject('postgres').app }))));
    shop.closeLater(() => rescue.close());
    await expect(rescue.query("SELECT pg_sleep(60)::text, 'hangs'", [])).rejects.toThrow('did not answer');
    expect(await rescue.query('SELECT 1 AS well', [])).toEqual([{ well: 1 }]);
    await shop.admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%''hangs''' AND pid <> pg_backend_pid()",
    );
  });

  test.each([
    ['is frozen', (url: string) => Object.freeze({ connectionString: url, max: 7 })],
    [
      'has getters',
      (url: string) => ({
        get connectionString() {
          return url;
        },
        get max() {
          return 7;
        },
      }),
    ],
  ])('has settings of its own where the config of the adapter %s', async (_, config) => {
    const adapter = new PrismaPg(config(inject('postgres').app));
    const factory = rescueFactory(adapter) as unknown as { readonly config: { readonly max: number } };
    expect(factory.config).toMatchObject({ max: 1, allowExitOnIdle: true });
    const rescue = new Rescue(connectionsOf(factory as unknown as typeof adapter));
    shop.closeLater(() => rescue.close());
    expect(await rescue.query('SELECT 1 AS well', [])).toEqual([{ well: 1 }]);
  });

  test('that hangs keeps nobody waiting for longer than one statement may', async () => {
    const { hostname: host, port } = new URL(inject('postgres').app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    shop.closeLater(() => proxy.close());
    const connectionString = proxy.url(inject('postgres').app);
    const rescue = new Rescue(connectionsOf(rescueFactory(new PrismaPg({ connectionString }))));
    shop.closeLater(() => rescue.close());
    await rescue.query('SELECT 1', []);
    proxy.silence();
    const accepted = proxy.accepted;
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => rescue.query('SELECT 1', [])));
    for (const each of asked)
      expect(each).toMatchObject({ reason: { message: expect.stringMatching(/did not answer|timeout exceeded/) } });
    // None of those behind the first one has tried for itself.
    expect(proxy.accepted).toBe(accepted);
    proxy.resume();
    expect(await rescue.query('SELECT 1 AS well', [])).toEqual([{ well: 1 }]);
  });
});
