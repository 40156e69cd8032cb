import { InvalidOptionError } from './base/errors.js';
import { toEmit } from './base/events.js';
import type { Database } from './fence/database.js';
import { Fencing } from './fence/fencing.js';
import { FallbackStore } from './lease/fallback.js';
import { Renewal } from './lease/renewal.js';
import { WaitingRoom } from './lease/waiting-room.js';
import { OpenHandles } from './open-handles.js';
import { DEFAULTS, type ResolvedOptions } from './options.js';
import type { Parts } from './parts.js';
import { checkClient, fieldsOf, modelsOf } from './prisma/client.js';
import type { PrismaInternals } from './prisma/internals.js';
import { Rescue, rescueFactory } from './prisma/rescue.js';
import { prismaDatabase } from './prisma/transactions.js';
import type { ClusterClient, RedisClient } from './redis/client.js';
import { RedisStore } from './redis/store.js';

/** Puts together what the calls of one extended client share. Nothing here opens a connection. */
export function assemble(client: PrismaInternals, options: ResolvedOptions) {
  const emit = toEmit(options.onEvent);
  const adapter = checkClient(client);
  const rescue = new Rescue(options.rescue ?? rescueFactory(adapter));
  const { keyPrefix, commandTimeout, onRedisUnavailable } = options;
  const redis = new RedisStore(
    options.redis as unknown as RedisClient | ClusterClient,
    { keyPrefix, commandTimeout },
    emit,
  );
  const store = onRedisUnavailable === 'postgres' ? new FallbackStore(redis, emit) : redis;
  const renewal = new Renewal(store);
  const room = new WaitingRoom(store, renewal, emit, options);
  const handles = new OpenHandles();
  const parts: Parts = { room, handles, fencing: fencingOf(client, options), emit, calm: true };
  const databases = new WeakMap<PrismaInternals, Database<object>>();
  return {
    parts,
    store,
    /** The same for each client that was extended further. */
    databaseOf(outermost: PrismaInternals): Database<object> {
      const database = databases.get(outermost) ?? prismaDatabase(outermost, rescue.query);
      databases.set(outermost, database);
      return database;
    },
    async close(): Promise<void> {
      await Promise.all([room.close(), handles.closeAll()]);
      renewal.close();
      await store.close();
      rescue.close();
    },
  };
}

function fencingOf(client: PrismaInternals, { fenceField, models }: ResolvedOptions): Fencing {
  const fields = fieldsOf(client);
  const has = (model: string) =>
    fields.get(model)?.some(({ name, type }) => name === fenceField && type === 'BigInt') ?? false;
  for (const model of models ?? []) {
    if (!fields.has(model)) throw new InvalidOptionError('models', `names ${model}, which the schema does not have.`);
    if (!has(model)) {
      throw new InvalidOptionError(
        'models',
        `names ${model}, which has no field \`${fenceField} BigInt @default(0)\`: add it, in a migration too.`,
      );
    }
  }
  if (fenceField !== DEFAULTS.fenceField && ![...fields.keys()].some(has)) {
    throw new InvalidOptionError('fenceField', `is ${fenceField}, which no model has as a field of type BigInt.`);
  }
  return new Fencing(fenceField, new Set(models ?? [...fields.keys()].filter(has)), modelsOf(client));
}
