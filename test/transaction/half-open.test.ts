import { once } from 'node:events';
import net from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { proxied, proxyTo } from '../support/proxied.js';
import { describeWithShop, gate, Shop, STAYS } from '../support/shop.js';

/** A way to the server of which only the client's side can be broken: the server believes that its client is there. */
async function breakable(url: string) {
  const target = new URL(url);
  const clients = new Set<net.Socket>();
  const servers = new Set<net.Socket>();
  const listener = net.createServer({ noDelay: true }, (client) => {
    const server = net.connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    clients.add(client);
    servers.add(server);
    for (const socket of [client, server]) socket.on('error', () => {});
    server.on('close', () => client.destroy());
    client.pipe(server, { end: false });
    server.pipe(client);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const led = new URL(url);
  led.host = `127.0.0.1:${(listener.address() as net.AddressInfo).port}`;
  return {
    url: led.href,
    breakOff() {
      for (const client of clients) client.resetAndDestroy();
      clients.clear();
    },
    close() {
      for (const server of servers) server.destroy();
      listener.close();
    },
  };
}

describeWithShop('a connection that is broken for the client alone', () => {
  const shop = new Shop();

  async function client() {
    const app = inject('postgres').app;
    const way = await breakable(app);
    shop.closeLater(() => way.close());
    const rescue = new PrismaPg({ connectionString: app });
    return { way, ...shop.client({ pool: { connectionString: way.url }, rescue, ...STAYS }) };
  }

  test('costs the next caller of the process no more than the end of its backend', async () => {
    const { id, key } = await shop.product(10);
    const { way, prisma, events } = await client();
    const inside = gate();
    // Longer than the test may take: its own time limits do not end it.
    const options = { leaseTime: 120_000 };
    const broken = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        inside.open();
        const slow = tx.$queryRaw`SELECT pg_sleep(0.5)::text`;
        setTimeout(() => way.breakOff(), 100);
        await slow;
      },
      options,
    );
    const told = expect(broken).rejects.toThrow();
    await inside.opened;
    const next = prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }), options);
    await told;
    // Before the call is told, so that no other one has to find it.
    expect(events.map(({ type }) => type)).toContain('backend-ended');
    expect((await next).quantity).toBe(10);
  });

  test('leaves the error of the function what it was, where its ROLLBACK has no answer', async () => {
    const app = inject('postgres').app;
    const { id, key } = await shop.product(10);
    const { proxy, prisma } = await proxied(shop, app);
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        proxy.silence();
        throw new Error('no sale');
      },
      { timeout: 500 },
    );
    await expect(held).rejects.toThrow('no sale');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('keeps its lease while its ROLLBACK has no answer: the outcome is not known before', async () => {
    const { prisma, proxy, events } = await proxied(shop, inject('postgres').app);
    const { key } = await shop.product(10);
    const held = prisma.$withLock(
      key,
      () => {
        proxy.silence();
        throw new Error('no sale');
      },
      { leaseTime: 1_200, timeout: 20_000 },
    );
    const refused = expect(held).rejects.toThrow('no sale');
    const redis = shop.redis();
    let [renewals, left] = [0, 0];
    await eventually('the lease has been renewed for longer than its time', async () => {
      const now = await redis.pttl(`fenced-lock:{${key}}:lease`);
      if (now > left) renewals++;
      left = now;
      return renewals > 4;
    });
    proxy.resume();
    await refused;
    expect(events).toEqual([]);
  });
});

describeWithShop('a transaction whose connection is closed while its function runs', () => {
  const shop = new Shop();

  test('by a time limit of Postgres, is told while the function still waits', async () => {
    const { key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 10`;
      await new Promise(() => {});
    });
    const message = expect.stringContaining('25P03');
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key, message });
  });

  test('is told at the next renewal, where the adapter has no pool of pg', async () => {
    const { prisma } = shop.client({ adapter: new PoollessPg({ connectionString: inject('postgres').app }) });
    const { key } = await shop.product(10);
    const inside = gate<number>();
    const held = prisma.$withLock(
      key,
      async (tx) => {
        const [session] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
        inside.open(session?.pid as number);
        await new Promise(() => {});
      },
      { leaseTime: 1_500 },
    );
    held.catch(() => {});
    await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [await inside.opened]);
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key });
  });

  test('before COMMIT is sent, and Postgres is away: it is known to be rolled back', async () => {
    const { id, key } = await shop.product(10);
    const proxy = await proxyTo(inject('postgres').app);
    const through = { connectionString: proxy.url(inject('postgres').app), max: 1 };
    const pool = shop.pool(through);
    const noticed = gate();
    pool.on('connect', (client) => client.once('error', () => noticed.open()));
    const { prisma } = shop.client({ adapter: new PrismaPg(pool), rescue: new PrismaPg(through) });
    shop.closeLater(() => proxy.close());
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      await proxy.refuse();
      proxy.reset();
      await noticed.opened;
    });
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, reason: 'connection' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
