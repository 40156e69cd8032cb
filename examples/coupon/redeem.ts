import type { ExampleClient } from '../client.js';

/** What the shop answers to `POST /coupons/:code/redeem`. */
export interface Answer {
  readonly status: 200 | 202 | 404 | 409 | 410;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: { readonly message: string; readonly left?: number };
}

/**
 * Redeems a coupon once for a user, without waiting. A campaign's code is one hot key: who comes while somebody else is
 * served is told to come again, and holds neither a connection nor a place in a queue meanwhile.
 *
 * - 200: redeemed. - 202: busy; nothing was done, send it again. - 409: this user has redeemed it before.
 * - 410: it is used up. - 404: there is no such code.
 */
export async function redeem(prisma: ExampleClient, code: string, user: string): Promise<Answer> {
  const result = await prisma.$tryWithLock(`coupon:${code}`, async (tx): Promise<Answer> => {
    const coupon = await tx.coupon.findUnique({ where: { code } });
    if (coupon === null) return { status: 404, body: { message: 'there is no such code' } };
    const before = await tx.redemption.findUnique({ where: { code_user: { code, user } } });
    if (before !== null) return { status: 409, body: { message: 'you have redeemed it before' } };
    if (coupon.left === 0) return { status: 410, body: { message: 'it is used up' } };
    const left = coupon.left - 1;
    await tx.coupon.update({ where: { code }, data: { left } });
    await tx.redemption.create({ data: { code, user } });
    return { status: 200, body: { message: 'redeemed', left } };
  });
  if (result.acquired) return result.value;
  return { status: 202, headers: { 'retry-after': '1' }, body: { message: 'busy, send it again' } };
}
