import { InvalidOptionError } from '../../base/errors.js';
import { observedOf } from '../../call/observed.js';
import type { LockTurn } from '../../public.js';
import { postgresHealth, type RedisClientSeen, redisHealth } from './health.js';
import type { BoardSource, ServerState } from './source.js';

/** The locks of a client that is extended by `fencedLock`, or those that `fencedLocks` made, as far as their type matters. */
export type LockingClient = { readonly $locks: OperatorLocks } | { readonly locks: OperatorLocks };

/** What the board asks of the locks. */
export interface OperatorLocks {
  inspect(key: string): Promise<{ readonly holder: string | undefined }>;
  forceRelease(key: string, seen: { readonly holder: string | undefined }): Promise<boolean>;
  history(key: string): Promise<{ readonly last: readonly LockTurn[] }>;
}

/** What is shown in place of the servers of Redis with `memoryStore()`. */
const IN_MEMORY: ServerState = {
  address: 'memoryStore()',
  role: 'No Redis: leases and queues are in the memory of this process.',
  status: 'in use',
  healthy: true,
  findings: [],
};

/** @throws InvalidOptionError for what has no locks */
export function sourceOf(client: LockingClient): BoardSource {
  const given = (client ?? {}) as Partial<Record<'$locks' | 'locks', OperatorLocks>>;
  // A client of Prisma may have a model `locks`.
  const locks = (given.$locks ?? given.locks) as OperatorLocks;
  const observed = observedOf(locks);
  if (observed === undefined) {
    throw new InvalidOptionError(
      'client',
      'must be a client that is extended by fencedLock, createBoard(prisma), or what fencedLocks gave, createBoard(locks).',
    );
  }
  const clients = observed.redis as unknown as readonly RedisClientSeen[];
  let database = 'not known yet';
  return {
    look: (recent) => observed.look(recent),
    async forceRelease(key, shown) {
      if (await locks.forceRelease(key, { holder: shown ?? undefined })) return 'taken';
      const { holder } = await locks.inspect(key);
      return holder === undefined || holder === shown ? 'free' : 'held by another';
    },
    history: async (key) => (await locks.history(key)).last,
    async health() {
      const [postgres, redis] = await Promise.all([postgresHealth(observed.query, database), redisHealth(clients)]);
      database = postgres.address;
      return { postgres, redis: clients.length === 0 ? [IN_MEMORY] : redis };
    },
    callers: () => observed.callers(),
  };
}
