import type { Client } from './client';

/** Redeems a coupon, and answers as an HTTP status: 200 once, then 409, and 202 while another request redeems it. */
export async function redeem(prisma: Client, code: string): Promise<200 | 202 | 409> {
  const tried = await prisma.$tryWithLock(`coupon:${code}`, async (tx) => {
    const { redeemed } = await tx.coupon.findUniqueOrThrow({ where: { code } });
    if (redeemed) return 409;
    await tx.coupon.update({ where: { code }, data: { redeemed: true } });
    return 200;
  });
  return tried.acquired ? tried.value : 202;
}
