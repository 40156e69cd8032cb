import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { sellOne } from '../sale.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** A transaction and nothing else. At READ COMMITTED its read keeps nobody from writing. */
export function noLock({ databaseUrl }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  return {
    sell: (sale) => prisma.$transaction((tx) => sellOne(tx, sale), { maxWait: PATIENCE, timeout: PATIENCE }),
    isRefusal: () => false,
    close: () => prisma.$disconnect(),
  };
}
