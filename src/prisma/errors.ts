/** Prisma's error of a transaction that Postgres has rolled back because of a concurrent one (SQLSTATE 40001). */
export async function writeConflict(): Promise<Error> {
  // Loaded when it is needed, because `/testing` can be loaded without a peer.
  const { Prisma } = await import('@prisma/client/extension');
  const { PrismaClientKnownRequestError } = await import('@prisma/client/runtime/client');
  const message = 'Transaction failed due to a write conflict or a deadlock. Please retry your transaction';
  return new PrismaClientKnownRequestError(message, { code: 'P2034', clientVersion: Prisma.prismaVersion.client });
}
