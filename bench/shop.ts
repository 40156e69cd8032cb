import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../src/index.js';
import { PrismaClient } from '../test/generated/prisma/client.js';
import { startPostgres, startRedis } from '../test/support/servers/index.js';
import { setUpShop } from '../test/support/shop-database.js';

/** Real servers and one locking client on them. */
export async function startShop() {
  const [postgres, server] = await Promise.all([startPostgres(), startRedis()]);
  const connectionString = await setUpShop(postgres);
  const redis = new Redis(server.url);
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) }).$extends(fencedLock({ redis }));
  return {
    prisma,
    admin: postgres.url,
    servers: `PostgreSQL ${postgres.version} (${postgres.kind}), Redis ${server.version} (${server.kind}), Node ${process.versions.node}`,
    async stop() {
      await prisma.$disconnect();
      redis.disconnect();
      await Promise.all([postgres.stop(), server.stop()]);
    },
  };
}

export type BenchShop = Awaited<ReturnType<typeof startShop>>;
