import type { PrismaClient } from '../generated/prisma/client.js';
import { gate } from './shop.js';

/** A transaction without a lock, which has its connection until it is let go. */
export async function busy(client: PrismaClient): Promise<{ letGo(): Promise<void> }> {
  const [inside, goOn] = [gate(), gate()];
  const transaction = client.$transaction(
    async (tx) => {
      await tx.$queryRaw`SELECT 1`;
      inside.open();
      await goOn.opened;
    },
    { timeout: 20_000 },
  );
  await inside.opened;
  return {
    async letGo() {
      goOn.open();
      await transaction;
    },
  };
}
