import { askServer, type RedisServer } from '../../../src/addons/testing/servers/redis.js';
import type { RedisSite } from '../redis-site.js';
import type { RedisGroup } from './redis-group.js';
import { stopAll } from './redis-group.js';

/** One node alone. */
export function groupOfOne(server: RedisServer): RedisGroup {
  return groupOf([server], { kind: 'single', url: server.url }, 'one node');
}

/** Servers that know nothing of each other. */
export function groupOf(nodes: readonly RedisServer[], site: RedisSite, about: string): RedisGroup {
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
