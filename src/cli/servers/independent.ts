import { QuorumStore } from '../../stores/quorum.js';
import type { Context } from '../context.js';
import { Misuse, Problem } from '../problem.js';
import { checkKeepsLocks, locksOn, lossOf, openRedis, type RedisServerClient } from './redis.js';
import type { Locks, RedisServers } from './redis-server.js';

/**
 * Connects to independent nodes, as `fencedLock({ redis: [a, b, c] })` does. A majority decides. Unreachable nodes are
 * only reported while the others are enough.
 *
 * @throws Problem
 */
export async function connectNodes(context: Context, urls: readonly string[]): Promise<RedisServers> {
  const nodes: RedisServerClient[] = [];
  const close = () => {
    for (const node of nodes) node.close();
  };
  try {
    for (const url of urls) nodes.push(await openRedis(context, url));
    const names = nodes.map(({ shown }) => shown);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice !== undefined) throw new Misuse(`--redis-url leads to ${twice} twice: once for each node.`);
    for (const node of nodes) checkKeepsLocks(node);
    const clustered = nodes.find(({ mode }) => mode === 'cluster');
    if (clustered) throw new Problem(`${clustered.shown} is a node of a Cluster: give --redis-url once, for any node.`);
    const failures = nodes.flatMap(({ failure }) => failure?.message ?? []);
    if (failures.length * 2 >= nodes.length) throw new Problem(failures.join(' '));
    for (const failure of failures) context.complainOnce(`fenced-lock: ${failure} The other nodes decide.`);
    return {
      places: nodes.map(({ place }) => place),
      close,
      get servers() {
        return nodes.map((node, index) => ({
          address: node.shown,
          role: `node ${index + 1} of ${nodes.length}`,
          failure: node.failure?.message ?? lossOf(node),
        }));
      },
      locks: (keyPrefix) => {
        // No offers with several nodes: each node might make its offer to another process.
        const stores = nodes.map(({ store }) => store(keyPrefix, { offerTime: 0 }));
        const locks = locksOn(new QuorumStore(stores, 0, () => {}), () => names.join(', '));
        const force: Locks['force'] = async (key, holder) => {
          const taken = await locks.force(key, holder);
          // The majority is enough for the result, but the command would exit with the other commands in flight.
          await Promise.allSettled(stores.map((store) => store.force(key, holder)));
          return taken;
        };
        return { ...locks, force };
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}
