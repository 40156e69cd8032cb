import type { Client } from './client';

/** Moves money between two accounts, under the keys of both. */
export async function transfer(prisma: Client, from: number, to: number, amount: number): Promise<void> {
  await prisma.$withLock([`account:${from}`, `account:${to}`], async (tx) => {
    const source = await tx.account.findUniqueOrThrow({ where: { id: from } });
    const target = await tx.account.findUniqueOrThrow({ where: { id: to } });
    if (source.balance < amount) throw new Error('not enough money');
    await tx.account.update({ where: { id: from }, data: { balance: source.balance - amount } });
    await tx.account.update({ where: { id: to }, data: { balance: target.balance + amount } });
  });
}
