import { askServer, type RedisServer, redisOnPath, startProgram } from '../../../src/addons/testing/servers/redis.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';
import type { RedisSite } from '../redis-site.js';
import { programForGroups, type RedisGroup, startAll, stopAll } from './redis-group.js';
import { wallClock } from './wall-clock.js';

/** One node alone. */
export function groupOfOne(server: RedisServer): RedisGroup {
  return groupOf([server], { kind: 'single', url: server.url }, 'one node');
}

/** Servers that know nothing of each other. */
function groupOf(nodes: readonly RedisServer[], site: RedisSite, about: string): RedisGroup {
  return {
    site,
    nodes,
    about: `${nodes[0]?.kind === 'valkey-server' ? 'Valkey' : 'Redis'} ${nodes[0]?.version}, ${about}`,
    isWhole: async () => {
      const answers = await Promise.allSettled(nodes.map(({ url }) => askServer(url, 'PING')));
      return answers.every(({ status }) => status === 'fulfilled');
    },
    stop: () => stopAll(nodes),
  };
}

export async function startQuorum(count: number): Promise<RedisGroup> {
  const nodes = await startAll(count, () => [], { ...programForGroups(), env: wallClock });
  return groupOf(nodes, { kind: 'quorum', urls: nodes.map(({ url }) => url) }, `${count} independent nodes`);
}

/** Why `startValkey` would throw, in a sentence; undefined if it would not. */
export function valkeyUnavailable(): string | undefined {
  return redisOnPath(['valkey-server']) === undefined ? UNAVAILABLE : undefined;
}

const UNAVAILABLE =
  'valkey-server is not on PATH; Debian has it in bookworm-backports (apt-get install valkey-server).';

export async function startValkey(args: readonly string[] = []): Promise<RedisServer> {
  const program = redisOnPath(['valkey-server']);
  if (program === undefined) throw new ServerUnavailable(UNAVAILABLE);
  return await startProgram({ ...program, env: wallClock }, args);
}
