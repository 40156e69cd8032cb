import { type RedisGroup, startAll, stopAll } from './redis-group.js';
import { answersPing } from './redis-ping.js';

/** Servers that know nothing of each other. */
export async function startQuorum(count: number): Promise<RedisGroup> {
  const nodes = await startAll(count, () => []);
  return {
    site: { kind: 'quorum', urls: nodes.map(({ url }) => url) },
    nodes,
    isWhole: async () => {
      const answers = await Promise.allSettled(nodes.map(({ port }) => answersPing(port)));
      return answers.every(({ status }) => status === 'fulfilled');
    },
    stop: () => stopAll(nodes),
  };
}
