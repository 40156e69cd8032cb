// A process that ends right behind a call.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, redisUrl, key] = process.argv.slice(2) as [string, string, string];
const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) });
const prisma = plain.$extends(fencedLock({ redis: new Redis(redisUrl) }));

await prisma.$withLock(key, (tx) => tx.stock.count(), { leaseTime: 30_000 });
process.exit(7);
