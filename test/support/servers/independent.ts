import { askServer, redisOnPath } from '../../../src/addons/testing/servers/redis.js';
import { programForGroups, type RedisGroup, startAll, stopAll } from './redis-group.js';
import { wallClock } from './wall-clock.js';

/** For the fault that makes it evict; without a limit it never does. */
const EVICTING = ['--maxmemory-policy', 'allkeys-random'];

/** One node alone, of one of these kinds. */
export async function startOne(kinds?: Parameters<typeof redisOnPath>[0]): Promise<RedisGroup> {
  const [node] = await startAll(1, EVICTING, { ...programForGroups(kinds), env: wallClock });
  return groupOf([node], { kind: 'single', url: node.url }, 'one node');
}

/** Servers that know nothing of each other. */
export async function startQuorum(count: number): Promise<RedisGroup> {
  const nodes = await startAll(count, [], { ...programForGroups(), env: wallClock });
  return groupOf(nodes, { kind: 'quorum', urls: nodes.map(({ url }) => url) }, `${count} independent nodes`);
}

function groupOf(nodes: RedisGroup['nodes'], site: RedisGroup['site'], about: string): RedisGroup {
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

/** Why there is no Valkey here, in a sentence; undefined if there is one. */
export function valkeyUnavailable(): string | undefined {
  if (redisOnPath(['valkey-server']) !== undefined) return undefined;
  return 'valkey-server is not on PATH; Debian has it in bookworm-backports (apt-get install valkey-server).';
}
