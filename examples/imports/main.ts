// Five processes' clients import four payments each, from a server that takes three connections.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../client.js';
import { importPayment } from './imports.js';

const clients = Array.from({ length: 5 }, () => createClient());
let open = 0;
let most = 0;
const fetch = async (_order: string, signal: AbortSignal) => {
  most = Math.max(most, ++open);
  await sleep(100, undefined, { signal }).finally(() => open--);
  return 7;
};
try {
  await Promise.all(
    clients.flatMap(({ prisma }, process) =>
      Array.from({ length: 4 }, async () => {
        const permit = await importPayment(prisma, randomUUID(), fetch);
        console.log(`process ${process + 1} imported by permit ${permit}`);
      }),
    ),
  );
  console.log(`${most} connections at a time`);
} finally {
  for (const { close } of clients) await close();
}
