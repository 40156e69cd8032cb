import { createHash } from 'node:crypto';
import { ensure, nearest } from './base/checks.js';
import { type Emit, emitOf, toEmit } from './base/events.js';
import type { Observed } from './call/observed.js';
import { list } from './call/operators.js';
import type { Query } from './database/database.js';
import { Fencing } from './fencing/fencing.js';
import { DEFAULTS, type RedisLike, type ResolvedOptions } from './options/options.js';
import { fenceFactory } from './prisma/adapter.js';
import { rejectSkipped } from './prisma/batches.js';
import { checkClient } from './prisma/client.js';
import type { PrismaInternals } from './prisma/internals.js';
import { declarationsOf, modelsOf } from './prisma/models.js';
import { Rescue, rescueFactory } from './prisma/rescue.js';
import { prismaDatabases } from './prisma/transactions.js';
import type { ClusterClient, RedisClient } from './redis/client.js';
import { RedisStore } from './redis/store.js';
import { FallbackStore } from './stores/fallback.js';
import { QuorumStore } from './stores/quorum.js';
import { Renewal } from './waiting/renewal.js';
import { WaitingRoom } from './waiting/room.js';
import type { LeaseStore } from './waiting/store.js';

/** Creates what the locks of one Prisma client stand on. Opens no connection. */
export function assemble(client: PrismaInternals, options: ResolvedOptions) {
  const adapter = checkClient(client);
  fenceFactory(adapter);
  rejectSkipped(client);
  const rescue = new Rescue(options.rescue ?? rescueFactory(adapter));
  // A connection of its own: looks, such as those of a board, must not keep an outcome waiting.
  const lookout = new Rescue(options.rescue ?? rescueFactory(adapter));
  return {
    ...assembleLocks(options, lookout.query),
    fencing: fencingOf(client, options),
    databaseOf: prismaDatabases(rescue.query),
    close(): void {
      rescue.close();
      lookout.close();
    },
  };
}

/** What locks stand on whatever the database client is, as the command has none. `lookout`: a connection for looks. */
export function assembleLocks(options: ResolvedOptions, lookout: Query) {
  const emit = toEmit(options.onEvent);
  const store = storeOf(options, emit);
  const renewal = new Renewal(store);
  const room = new WaitingRoom(store, renewal, emit, { ...options, ...pollDelayOf(options) });
  const observed: Observed = {
    look: (recent) => list(store, lookout, recent),
    callers: () => room.waitingByKey(),
    query: lookout,
    redis: options.redis,
  };
  return { store, renewal, room, roomId: roomIdOf(options), emit, lookout, observed };
}

/** How long waiting processes may take to look at a key after a wake-up; milliseconds. */
const HEARD = 50;

/** Leases and queues, wherever the options say. */
export function storeOf(options: ResolvedOptions, emit: Emit): LeaseStore {
  if (options.memory) return options.memory.connect(options.keyPrefix, options.name);
  const redis = redisStoreOf(options, emit);
  return options.onRedisUnavailable === 'postgres' ? new FallbackStore(redis, emit) : redis;
}

function redisStoreOf(
  { redis, name, keyPrefix, commandTimeout, wake, pollInterval }: ResolvedOptions,
  emit: Emit,
): LeaseStore {
  const wakeUps = wake === 'pubsub';
  const store = (client: RedisLike, order: { offerTime?: number }, tell = emit) =>
    new RedisStore(
      client as unknown as RedisClient | ClusterClient,
      { keyPrefix, name, commandTimeout, wakeUps, ...order },
      tell,
    );
  const [only, ...others] = redis as [RedisLike, ...RedisLike[]];
  // Long enough for the process that is next to poll, even if it is late.
  if (others.length === 0) return store(only, wakeUps ? {} : { offerTime: Math.max(1_000, 2 * pollInterval) });
  // No offers with several nodes: each node might make its offer to another process.
  const nodes = redis.map((client, node) => store(client, { offerTime: 0 }, emitOf(node, emit)));
  return new QuorumStore(nodes, wakeUps ? HEARD : pollInterval, emit);
}

/**
 * Clients whose names in Redis have the same prefix share their leases, so they share a waiting room. Other clients do
 * not.
 */
function roomIdOf({ redis, memory, keyPrefix }: ResolvedOptions): number {
  const prefixes = memory
    ? [`memory ${memory.room} ${keyPrefix}`]
    : redis.map((client) => `${(client as unknown as RedisClient).options?.keyPrefix ?? ''}${keyPrefix}`);
  return createHash('sha256')
    .update(JSON.stringify([...new Set(prefixes)].sort()))
    .digest()
    .readInt32BE(0);
}

function pollDelayOf({ wake, pollInterval }: ResolvedOptions): { pollDelay?: () => number } {
  if (wake === 'pubsub') return {};
  // Between a tenth and all of it, so that processes that began together do not poll in step.
  return { pollDelay: () => pollInterval * (wake === 'poll' ? 0.1 + 0.9 * Math.random() : 1) };
}

function fencingOf(client: PrismaInternals, { fenceField, models }: ResolvedOptions): Fencing {
  const schema = client._runtimeDataModel.models;
  const names = Object.keys(schema);
  const withField = names.filter((model) =>
    schema[model]?.fields.some(({ name, type }) => name === fenceField && type === 'BigInt'),
  );
  for (const model of models ?? []) {
    const meant = nearest(model, names);
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    ensure(names.includes(model), 'models', `names ${model}, which the schema does not have.${hint}`);
    const missing = `which has no field \`${fenceField} BigInt @default(0)\`: npx fenced-lock add-fence ${model}.`;
    ensure(withField.includes(model), 'models', `names ${model}, ${missing}`);
  }
  const isUsed = fenceField === DEFAULTS.fenceField || withField.length > 0;
  ensure(isUsed, 'fenceField', `is ${fenceField}, which no model has as a field of type BigInt.`);
  const fenced = models ?? withField;
  const declared = declarationsOf(client);
  for (const model of fenced) checkFence(model, fenceField, declared(model, fenceField), models !== undefined);
  return new Fencing(fenceField, new Set(fenced), modelsOf(client));
}

/** @param isNamed whether the application says that it is one. Otherwise it is found by its name and its type. */
function checkFence(model: string, field: string, declared: string | undefined, isNamed: boolean): void {
  // The schema of this client is not known.
  if (declared === undefined) return;
  const right = `\`${field} BigInt @default(0)\``;
  ensure(
    !/^\w+(?:\?|\[\])/.test(declared),
    `${model}.${field}`,
    `may be NULL, or is a list: writes would pass over rows without a fence. Set the NULLs to 0, and make it ${right}.`,
  );
  ensure(
    isNamed || declared.includes('@default'),
    `${model}.${field}`,
    'has no default, so it may be a field of the application, whose values a lock would overwrite. If it is the fence, ' +
      `make it ${right}. If it is not, name the fenced models in \`models\`, or another \`fenceField\`.`,
  );
}
