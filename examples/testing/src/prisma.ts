import { createClient } from './client';

/** The one client of the process, for modules that import it. */
export const { prisma } = createClient({
  databaseUrl: process.env['DATABASE_URL'] ?? '',
  redisUrl: process.env['REDIS_URL'] ?? '',
});
