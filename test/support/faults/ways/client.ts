import { PrismaPg } from '@prisma/adapter-pg';
import { Redis, type RedisOptions } from 'ioredis';
import pg from 'pg';
import { fencedLock } from '../../../../src/index.js';
import { PrismaClient } from '../../../generated/prisma/client.js';
import type { Site } from '../messages.js';
import { type Means, TIMES } from './way.js';

/** Its duplicate, the subscriber, takes a line of its own. */
class TwoLines extends Redis {
  readonly #wakeUps: URL;

  constructor({ redisUrl, wakeUpsUrl }: Site) {
    super(redisUrl);
    this.#wakeUps = new URL(wakeUpsUrl);
    // Servers are killed on purpose; the commands that fail by it say so themselves.
    this.on('error', () => {});
  }

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const { hostname: host, port } = this.#wakeUps;
    return super.duplicate({ ...override, host, port: Number(port) });
  }
}

export function plainClient({ databaseUrl }: Pick<Site, 'databaseUrl'>) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 8 });
  // A backend that is ended right after it was connected: its last words can come in one piece with its first, when
  // pg-pool listens no longer and the adapter does not yet, and the process would end by them.
  pool.on('connect', (connection) => connection.on('error', () => {}));
  return new PrismaClient({ adapter: new PrismaPg(pool) });
}

/** The extended client, as an application has it. `models`: which ones are fenced. */
export function lockingClient({ site, onEvent }: Means, models?: readonly string[]) {
  const { waitTime, timeout, commandTimeout, maxWait } = TIMES;
  return plainClient(site).$extends(
    fencedLock({
      redis: new TwoLines(site),
      commandTimeout,
      defaults: { waitTime, timeout, maxWait },
      onEvent: ({ type }) => onEvent(type),
      ...(models && { models }),
    }),
  );
}
