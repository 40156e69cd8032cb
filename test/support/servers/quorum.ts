import { groupOf } from './independent.js';
import { programForGroups, type RedisGroup, startAll } from './redis-group.js';
import { wallClock } from './wall-clock.js';

/** Servers that know nothing of each other. */
export async function startQuorum(count: number): Promise<RedisGroup> {
  const nodes = await startAll(count, () => [], { ...programForGroups(), env: wallClock });
  return groupOf(nodes, { kind: 'quorum', urls: nodes.map(({ url }) => url) }, `${count} independent nodes`);
}
