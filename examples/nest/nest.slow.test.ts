import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { freePort } from '../../test/support/servers/index.js';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';
import { sellByTwoReplicas } from '../two-replicas.js';

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
    await worker.next('listening', { within: 60_000 });
    return { worker, url: `http://127.0.0.1:${port}` };
  }

  test('the board is mounted', async () => {
    const { url } = await start('shown');
    const page = await fetch(`${url}/admin/locks`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('src="locks/board.js"')]);
  });

  test('one is frozen past its lease, the other one killed: nothing is oversold or lost, and SIGTERM ends it within 2 s', {
    timeout: 200_000,
  }, async () => {
    await sellByTwoReplicas(shop, start);
  });
});
