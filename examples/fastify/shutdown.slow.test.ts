import { expect, inject, test } from 'vitest';
import { freePort } from '../../test/support/servers/index.js';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';

describeWithShop('the end of the Fastify application', () => {
  const shop = new Shop();

  test('SIGTERM: the sale that runs ends, waiters are turned away, the lease is given back', async () => {
    const { id } = await shop.product(10);
    const key = `stock:${id}`;
    const port = await freePort();
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url, PORT: String(port) };
    const server = startWorker(new URL('main.ts', import.meta.url), [], env);
    shop.closeLater(() => server.kill());
    await server.next('listening');
    const sell = async () => {
      const payload = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"quantity":1}' };
      const answer = await fetch(`http://127.0.0.1:${port}/stock/${id}/sell`, payload);
      const [retryAfter, connection] = ['retry-after', 'connection'].map((name) => answer.headers.get(name));
      return { status: answer.status, retryAfter, connection };
    };

    // Somebody else has the row, so the first sale stands at its write.
    const other = await shop.admin.connect();
    await other.query('BEGIN');
    await other.query('UPDATE "Stock" SET quantity = quantity WHERE id = $1', [id]);
    const running = sell();
    await shop.blocked('"Stock"');
    const waiting = [sell(), sell(), sell()];
    // They wait in their process; the request that is sent last has arrived when this one is answered.
    await fetch(`http://127.0.0.1:${port}/stock/${id}`);

    process.kill(server.pid, 'SIGTERM');
    for (const waiter of waiting) expect(await waiter).toEqual({ status: 503, retryAfter: '1', connection: 'close' });
    await other.query('COMMIT');
    other.release();
    expect(await running).toMatchObject({ status: 200, connection: 'close' });
    // 1 if it had to be ended after two seconds.
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(await shop.redis().exists(`fenced-lock:{${key}}:lease`)).toBe(0);
    expect((await shop.row(id))?.quantity).toBe(9);
  });
});
