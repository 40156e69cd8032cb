// Forty users redeem a code for ten at once, and send again what was answered with 202 or 503.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../client.js';
import { couponServer } from './server.js';

const USERS = 40;

const { prisma, close } = createClient();
const server = couponServer(prisma).listen(0, '127.0.0.1');
try {
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const code = randomUUID();
  await prisma.coupon.create({ data: { code, left: 10 } });
  const answers = new Map<number, number>();
  await Promise.all(
    Array.from({ length: USERS }, async (_, n) => {
      for (;;) {
        const url = `http://127.0.0.1:${port}/coupons/${code}/redeem?user=user-${n}`;
        const { status } = await fetch(url, { method: 'POST' });
        answers.set(status, (answers.get(status) ?? 0) + 1);
        if (status !== 202 && status !== 503) return;
        await sleep(20 + Math.random() * 80);
      }
    }),
  );
  for (const [status, count] of [...answers].sort()) console.log(`${status}: ${count} times`);
  const coupon = await prisma.coupon.findUniqueOrThrow({ where: { code } });
  console.log(`${await prisma.redemption.count({ where: { code } })} redeemed, ${coupon.left} left`);
} finally {
  server.close();
  server.closeAllConnections();
  await close();
}
