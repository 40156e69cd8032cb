import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { eventually } from '../../test/support/eventually.js';
import { freePort } from '../../test/support/servers/index.js';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';
import { Load } from '../load.js';

const CONNECTIONS = 25;
const STOCK = 100_000;
/** Past the lease of prisma.ts; ms. */
const FROZEN_FOR = 6_000;

describeWithShop('two replicas of the Nest application under load', () => {
  const shop = new Shop();

  async function start(name: string) {
    const port = await freePort();
    const env = {
      DATABASE_URL: inject('postgres').app,
      REDIS_URL: inject('redis').url,
      PORT: String(port),
      NAME: name,
      TSX_TSCONFIG_PATH: fileURLToPath(new URL('tsconfig.json', import.meta.url)),
    };
    const worker = startWorker(new URL('main.ts', import.meta.url), [], env);
    shop.closeLater(() => worker.kill());
    await worker.next('listening');
    return { worker, url: `http://127.0.0.1:${port}` };
  }

  async function sold(id: number, buyer: string): Promise<number> {
    const sql = 'SELECT count(*)::int AS count FROM "Order" WHERE "stockId" = $1 AND buyer LIKE $2';
    const { rows } = await shop.admin.query<{ count: number }>(sql, [id, buyer]);
    return rows[0]?.count as number;
  }

  test('the board is mounted', async () => {
    const { url } = await start('shown');
    const page = await fetch(`${url}/admin/locks`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('src="locks/board.js"')]);
  });

  test('one is frozen past its lease, the other one killed: nothing is oversold or lost, and SIGTERM ends it within 2 s', {
    timeout: 120_000,
  }, async () => {
    const { id } = await shop.product(STOCK);
    const [frozen, killed] = await Promise.all([start('frozen'), start('killed')]);
    const loads = [frozen, killed].map(
      ({ url }) => new Load(`${url}/stock/${id}/sell`, CONNECTIONS, { quantity: 1 }),
    ) as [Load, Load];
    const sells = (load: Load) => {
      const before = load.answers(200);
      return eventually('it sells', async () => load.answers(200) > before + 50, { within: 30_000 });
    };
    await Promise.all(loads.map(sells));

    frozen.worker.freeze();
    await sleep(FROZEN_FOR);
    await sells(loads[1]);
    frozen.worker.thaw();
    await Promise.all(loads.map(sells));

    await killed.worker.kill();
    await loads[1].stop();
    await sells(loads[0]);

    // Still under load.
    process.kill(frozen.worker.pid, 'SIGTERM');
    // 1 if it had to be ended after two seconds.
    expect((await frozen.worker.exited).code).not.toBe(1);
    await loads[0].stop();

    const orders = await sold(id, '%');
    expect(STOCK - ((await shop.row(id))?.quantity as number)).toBe(orders);
    for (const [load, name] of [
      [loads[0], 'frozen'],
      [loads[1], 'killed'],
    ] as const) {
      expect(await sold(id, name)).toBeGreaterThanOrEqual(load.answers(200));
      expect(await sold(id, name)).toBeLessThanOrEqual(load.answers(200) + CONNECTIONS);
    }
    // Sold, or turned away and not sold: what the frozen one had under way, what waited too long, what came at the end.
    const statuses = loads.flatMap((load) => [...load.statuses.keys()]);
    expect(statuses.filter((status) => ![200, 409, 503].includes(status))).toEqual([]);
  });
});
