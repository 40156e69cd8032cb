import type { RedisSite } from '../redis-site.js';
import { type RedisGroup, startAll, stopAll } from './redis-group.js';
import { answersPing } from './redis-ping.js';
import type { RedisServer } from './redis-server.js';

/** One node alone. */
export function groupOfOne(server: RedisServer): RedisGroup {
  return groupOf([server], { kind: 'single', url: server.url }, `${nameOf(server)}, one node`);
}

/** Nodes that do not know each other. */
export async function startIndependent(count: number): Promise<RedisGroup> {
  const nodes = await startAll(count, () => []);
  const [first] = nodes as [RedisServer];
  return groupOf(
    nodes,
    { kind: 'quorum', urls: nodes.map(({ url }) => url) },
    `${nameOf(first)}, ${count} independent nodes`,
  );
}

function groupOf(nodes: readonly RedisServer[], site: RedisSite, about: string): RedisGroup {
  return {
    nodes,
    site,
    about,
    isWhole: () =>
      Promise.all(nodes.map(({ port }) => answersPing(port))).then(
        () => true,
        () => false,
      ),
    stop: () => stopAll(nodes),
  };
}

function nameOf({ kind, version }: RedisServer): string {
  return `${kind === 'valkey-server' ? 'Valkey' : 'Redis'} ${version}`;
}
