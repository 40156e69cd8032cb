import { type LockOptions, LockTimeoutError } from 'prisma-extension-fenced-lock';
import type { Client } from './client';

/** Sells one of a stock. A buyer who waits too long is told so. */
export async function sell(prisma: Client, id: number, options?: LockOptions): Promise<'sold' | 'sold out' | 'busy'> {
  try {
    return await prisma.$withLock(
      `stock:${id}`,
      async (tx) => {
        const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
        if (quantity === 0) return 'sold out';
        await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
        return 'sold';
      },
      options,
    );
  } catch (error) {
    if (error instanceof LockTimeoutError) return 'busy';
    throw error;
  }
}
