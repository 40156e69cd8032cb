import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { Rescue, rescueFactory } from '../../src/prisma/rescue.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('the rescue connection', () => {
  const shop = new Shop();

  test('is another one after a statement that hangs', async () => {
    const rescue = new Rescue(rescueFactory(new PrismaPg({ connectionString: inject('postgres').app })));
    shop.closeLater(() => rescue.close());
    await expect(rescue.query("SELECT pg_sleep(60)::text, 'hangs'", [])).rejects.toThrow('did not answer');
    expect(await rescue.query('SELECT 1 AS well', [])).toEqual([{ well: 1 }]);
    await shop.admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%''hangs''' AND pid <> pg_backend_pid()",
    );
  });
});
