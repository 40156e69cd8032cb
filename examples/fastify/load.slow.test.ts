import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { eventually } from '../../test/support/eventually.js';
import { freePort } from '../../test/support/servers/index.js';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';
import { Load } from '../load.js';

const CONNECTIONS = 25;
const STOCK = 1_000_000;
/** Of client.ts; ms. */
const LEASE_TIME = 5_000;
/** What a request may take beside its wait for the lease, on a machine that does other things, too; ms. */
const SERVED_WITHIN = 4_000;

/** A machine that does other things, too. */
const SLOWLY = { within: 60_000 };

describeWithShop('two processes of the Fastify application under load', () => {
  const shop = new Shop();

  async function start(name: string) {
    const port = await freePort();
    const { app: DATABASE_URL } = inject('postgres');
    const env = { DATABASE_URL, REDIS_URL: inject('redis').url, PORT: String(port), NAME: name };
    const worker = startWorker(new URL('main.ts', import.meta.url), [], env);
    shop.closeLater(() => worker.kill());
    await worker.next('listening');
    return { worker, url: `http://127.0.0.1:${port}` };
  }

  async function sold(id: number, buyer = '%'): Promise<number> {
    const sql = 'SELECT count(*)::int AS count FROM "Order" WHERE "stockId" = $1 AND buyer LIKE $2';
    const { rows } = await shop.admin.query<{ count: number }>(sql, [id, buyer]);
    return rows[0]?.count as number;
  }

  test('kill -9 of the one that has the key: the other waits for its lease at most, and nothing is lost', {
    timeout: 200_000,
  }, async () => {
    const { id } = await shop.product(STOCK);
    const [killed, survivor] = await Promise.all([start('killed'), start('survivor')]);
    const loads = [killed, survivor].map(
      ({ url }) => new Load(`${url}/stock/${id}/sell`, CONNECTIONS, { quantity: 1 }),
    ) as [Load, Load];
    for (const load of loads) await eventually('both sell', async () => load.answers(200) > 50, SLOWLY);

    // Frozen at any moment it may have the key or not. It has if the other one sells nothing for longer than an offer lasts.
    await eventually(
      'one stands still while it has the key',
      async () => {
        killed.worker.freeze();
        await sleep(50);
        const before = await sold(id);
        await sleep(1_500);
        if ((await sold(id)) === before) return true;
        killed.worker.thaw();
        await sleep(50);
        return false;
      },
      SLOWLY,
    );
    await killed.worker.kill();
    const since = loads[1].answers(200);
    await Promise.all([
      loads[0].stop(),
      eventually('the other sells again', async () => loads[1].answers(200) > since + 100, SLOWLY),
    ]);
    const errors = await loads[1].stop();

    expect([...loads[1].statuses.keys()]).toEqual([200]);
    expect(errors).toBe(0);
    expect(loads[1].slowest).toBeGreaterThan(1_500);
    expect(loads[1].slowest).toBeLessThan(LEASE_TIME + SERVED_WITHIN);
    // What was under way has its outcome in the database, whether or not anybody has heard of it.
    await survivor.worker.stop();
    expect(STOCK - ((await shop.row(id))?.quantity as number)).toBe(await sold(id));
    expect(await sold(id, 'survivor')).toBeGreaterThanOrEqual(loads[1].answers(200));
    expect(await sold(id, 'survivor')).toBeLessThanOrEqual(loads[1].answers(200) + CONNECTIONS);
    expect(await sold(id, 'killed')).toBeGreaterThanOrEqual(loads[0].answers(200));
    expect(await sold(id, 'killed')).toBeLessThanOrEqual(loads[0].answers(200) + CONNECTIONS);
  });
});
