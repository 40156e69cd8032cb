import { brief, postgresHealth } from '../../addons/board/health.js';
import type { BoardSource, BoardTurn, Finding, ServerState } from '../../addons/board/source.js';
import { now } from '../../base/clock.js';
import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { advised } from '../problem.js';
import { type ServerOptions, withServers } from '../servers/both.js';
import { LastingServers } from '../servers/lasting.js';
import { postgresPlace } from '../servers/postgres.js';
import type { RedisServers } from '../servers/redis-server.js';
import { databaseUrl } from '../servers/urls.js';
import { type CommittedTurn, lastTurns } from './last-turns.js';
import { raiseToken, serverTime } from './raise-token.js';
import { describe } from './state.js';

/** What a board shows of both servers, over connections of the command's own. */
export function serversSource(context: Context, options: ServerOptions): BoardSource {
  const servers = new LastingServers(context, options);
  const keyPrefix = options.keyPrefix ?? DEFAULTS.keyPrefix;
  /** That of the last look, and whether it answered. */
  let redis: RedisServers | undefined;
  let answered = false;
  let database: string | undefined;
  const inspect = (key: string) => servers.withRedis((redis) => redis.locks(keyPrefix).inspect(key));
  return {
    async look(recent) {
      const { round } = servers;
      const listing = servers.withRedis((opened) => {
        redis = opened;
        return opened.locks(keyPrefix).list();
      });
      const { keys, missing } = await listing.catch((error: unknown) => {
        answered = false;
        throw error;
      });
      answered = true;
      const inUse = new Set(keys.map(({ key }) => key));
      const idle = recent.filter((key) => !inUse.has(key));
      const free = idle.map((key) => ({ key, holder: undefined, expiresIn: 0, waiting: 0 }));
      const described = await servers.withDatabase((opened) => describe([...keys, ...free], opened), round);
      return { keys: described, missing };
    },
    holderOf: async (key) => (await inspect(key)).holder ?? null,
    // As `unlock` does, on connections for this alone: it ends what is in its way from a second one.
    forceRelease: (key, shown) =>
      withServers(context, options, async ({ database, locks, aside }) => {
        const foundAt = await serverTime(database);
        const { holder, problem } = await locks.inspect(key);
        if (holder !== (shown ?? undefined)) return false;
        const { ended } = await raiseToken(database, await aside(), key, foundAt);
        const held = holder !== undefined || problem !== undefined;
        return (held && (await locks.force(key, holder ?? ''))) || ended.length > 0;
      }).catch((cause: unknown) => {
        throw new Error(advised(cause), { cause });
      }),
    history: async (key) => (await servers.withDatabase((opened) => lastTurns(key, opened))).last.map(shownTurn),
    async health() {
      // Both begin now: after `rest` the second one would open a connection that nobody closes.
      const postgres = postgresHealth((text, values) => servers.withDatabase((opened) => opened.query(text, values)));
      const redis = redisHealth(() => inspect('fenced-lock board'));
      // From the URL, without connecting: it is known also where the server cannot be reached.
      database ??= await databaseUrl(context, options)
        .then((url) => postgresPlace(context, url))
        .catch(() => undefined);
      const [{ findings }, ofRedis] = await Promise.all([postgres, redis]);
      return { findings: [...findings, ofRedis], database };
    },
    topology: () => (redis?.servers ?? []).map((server) => stateOf(server, answered)),
    rest() {
      redis = undefined;
      servers.close();
    },
  };
}

/** What only the process of a turn knows is not known here. */
function shownTurn({ turn, token, admittedAt }: CommittedTurn): BoardTurn {
  return { turn, token, admittedAt, outcome: 'committed', duration: null, process: null, error: null };
}

function stateOf({ address, role, failure }: RedisServers['servers'][number], answered: boolean): ServerState {
  const healthy = answered && failure === undefined;
  return { address, role, status: healthy ? 'connected' : 'not reached', healthy };
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
