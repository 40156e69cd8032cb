import { now } from '../../base/clock.js';
import { brief, postgresHealth } from '../../board/health.js';
import type { BoardSource, Finding, RedisServerState } from '../../board/source.js';
import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { type ServerOptions, withServers } from '../servers/both.js';
import { LastingServers } from '../servers/lasting.js';
import { raiseToken } from './raise-token.js';
import { describe } from './state.js';

/** What a board shows of both servers, over connections of the command's own. */
export function serversSource(context: Context, options: ServerOptions): BoardSource {
  const servers = new LastingServers(context, options);
  const keyPrefix = options.keyPrefix ?? DEFAULTS.keyPrefix;
  let topology: readonly RedisServerState[] = [];
  const inspect = (key: string) => servers.withRedis((redis) => redis.locks(keyPrefix).inspect(key));
  return {
    async look(recent) {
      const { keys, missing } = await servers.withRedis((redis) => {
        topology = redis.servers.map(({ address, role, failure }) => ({
          address,
          role,
          status: failure === undefined ? 'connected' : 'not reached',
          healthy: failure === undefined,
        }));
        return redis.locks(keyPrefix).list();
      });
      const inUse = new Set(keys.map(({ key }) => key));
      const idle = recent.filter((key) => !inUse.has(key));
      const free = idle.map((key) => ({ key, holder: undefined, expiresIn: 0, waiting: 0 }));
      return { keys: await servers.withDatabase((database) => describe([...keys, ...free], database)), missing };
    },
    holderOf: async (key) => (await inspect(key)).holder ?? null,
    // As `unlock` does, on connections for this alone: it ends what is in its way from a second one.
    forceRelease: (key) =>
      withServers(context, options, async ({ database, locks, aside }) => {
        const { holder, problem } = await locks.inspect(key);
        const { ended } = await raiseToken(database, await aside(), key);
        const held = holder !== undefined || problem !== undefined;
        return (held && (await locks.force(key, holder ?? ''))) || ended.length > 0;
      }),
    async health() {
      const postgres = await postgresHealth((text, values) =>
        servers.withDatabase((database) => database.query(text, values)),
      );
      return [...postgres, await redisHealth(() => inspect('fenced-lock board'))];
    },
    topology: () => topology,
    rest: () => servers.close(),
  };
}

async function redisHealth(ask: () => Promise<unknown>): Promise<Finding> {
  const since = now();
  try {
    await ask();
    const message = `Redis answers in ${(now() - since).toFixed(1)} ms.`;
    return { server: 'redis', check: 'connection', status: 'ok', message };
  } catch (error) {
    const remedy = 'Check the URL, the server and the way to it.';
    return { server: 'redis', check: 'connection', status: 'fault', message: `${brief(error)}.`, remedy };
  }
}
