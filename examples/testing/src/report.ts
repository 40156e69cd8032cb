import type { Client } from './client';

const DAY = 24 * 60 * 60 * 1_000;

/** Writes the report of the night, in whichever process comes first. Resolves to whether this call has written it. */
export async function writeReport(prisma: Client): Promise<boolean> {
  const { ran } = await prisma.$oncePer('report:nightly', DAY, async (tx) => {
    await tx.report.create({ data: { sales: 3 } });
  });
  return ran;
}
