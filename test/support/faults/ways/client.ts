import { PrismaPg } from '@prisma/adapter-pg';
import { Redis, type RedisOptions } from 'ioredis';
import pg from 'pg';
import { type FencedLockOptions, fencedLock, memoryStore } from '../../../../src/index.js';
import { PrismaClient } from '../../../generated/prisma/client.js';
import { PoollessPg } from '../../poolless-pg.js';
import { connectTo } from '../../redis-site.js';
import type { Site } from '../messages.js';
import { type FaceName, faceClient } from './face.js';
import { TIMES } from './way.js';

/** The extended client, as an application has it. */
export type LockingClient = ReturnType<typeof lockingClient>;

/** Of what kind the clients of one process are. */
export interface Kind {
  readonly fairness: NonNullable<FencedLockOptions['fairness']>;
  readonly wake: NonNullable<FencedLockOptions['wake']>;
  /** Whether its table has the column of a fence. */
  readonly fenced: boolean;
  /** Whether its adapter has a pool of pg. */
  readonly pooled: boolean;
  readonly face: FaceName;
}

/** What they share. */
export interface Means extends Kind {
  readonly site: Site;
  onEvent(type: string): void;
}

/** Its duplicate, the subscriber, takes a line of its own. */
class TwoLines extends Redis {
  readonly #wakeUps: URL;

  constructor(url: string, wakeUpsUrl: string) {
    super(url);
    this.#wakeUps = new URL(wakeUpsUrl);
    // Servers are killed on purpose; the commands that fail by it say so themselves.
    this.on('error', () => {});
  }

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const { hostname: host, port } = this.#wakeUps;
    return super.duplicate({ ...override, host, port: Number(port) });
  }
}

/** Of this process, for sites without a Redis. */
export const MEMORY = memoryStore();

function redisOf({ redis, wakeUpsUrl }: Site): FencedLockOptions['redis'] {
  if (redis === 'memory') return MEMORY;
  const ownLine = redis.kind === 'single' && wakeUpsUrl !== undefined;
  return ownLine ? new TwoLines(redis.url, wakeUpsUrl) : connectTo(redis).redis;
}

export function plainClient({ databaseUrl }: Pick<Site, 'databaseUrl'>, pooled = true, fenced = true) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 8 });
  // A backend that is ended right after it was connected: its last words can come in one piece with its first, when
  // pg-pool listens no longer and the adapter does not yet, and the process would end by them.
  pool.on('connect', (connection) => connection.on('error', () => {}));
  const adapter = pooled ? new PrismaPg(pool) : new PoollessPg(pool);
  // The generated model has the field: a client that reads it would miss the column.
  return new PrismaClient({ adapter, ...(!fenced && { omit: { stock: { fence: true } } }) });
}

type Own = Pick<FencedLockOptions, 'models' | 'onRedisUnavailable'>;

function optionsOf({ site, fairness, wake, onEvent }: Means) {
  const { waitTime, timeout, commandTimeout, maxWait } = TIMES;
  return {
    redis: redisOf(site),
    commandTimeout,
    fairness,
    wake,
    defaults: { waitTime, timeout, maxWait },
    onEvent: ({ type }: { readonly type: string }) => onEvent(type),
  };
}

function lockingClient(means: Means, own: Own) {
  const { site, pooled, fenced } = means;
  const options = { ...optionsOf(means), ...(!fenced && { models: [] }), ...own };
  return plainClient(site, pooled, fenced).$extends(fencedLock(options));
}

function openClient(means: Means, own: Own): LockingClient {
  const { face, site } = means;
  if (face === 'prisma') return lockingClient(means, own);
  const { models: _, ...others } = own;
  return faceClient(face, site.databaseUrl, { ...optionsOf(means), ...others });
}

const CLIENTS = {
  standard: {},
  'on Postgres alone if need be': { onRedisUnavailable: 'postgres' },
  'nothing fenced': { models: [] },
  operator: {},
} as const satisfies Record<string, Own>;

/** The clients of one process. All ways share them, as the parts of an application do, so they meet in one queue. */
export class Clients {
  readonly #means: Means;
  readonly #made = new Map<keyof typeof CLIENTS, LockingClient>();

  constructor(means: Means) {
    this.#means = means;
  }

  get site(): Site {
    return this.#means.site;
  }

  /** Connected when it is first wanted. */
  get(name: keyof typeof CLIENTS): LockingClient {
    const client = this.#made.get(name) ?? openClient(this.#means, CLIENTS[name]);
    this.#made.set(name, client);
    return client;
  }
}
