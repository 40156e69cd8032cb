import type { ClusterClient } from '../client.js';
import { listen } from '../shared-listeners.js';

interface AskingNode {
  asking?(...given: unknown[]): Promise<unknown>;
}

const guarded = new WeakSet<object>();

/**
 * Keeps the process from being ended by an answer that nobody awaits. While a slot moves, ioredis (up to 6.0) sends ASKING in front of a
 * command, and listens to the command alone. If the node does not answer, and the client has a `commandTimeout`, ASKING
 * rejects, too: an unhandled rejection, by which Node ends the process.
 *
 * @returns the function that stops listening to the client for new nodes.
 */
export function guardAsking(redis: ClusterClient): () => void {
  const guardAll = () => {
    for (const node of redis.nodes('all')) guard(node as AskingNode);
  };
  guardAll();
  return listen(redis, '+node', guardAll);
}

function guard(node: AskingNode): void {
  const { asking } = node;
  if (asking === undefined || guarded.has(node)) return;
  guarded.add(node);
  node.asking = (...given) => {
    const answer = asking.apply(node, given);
    answer.catch(() => {});
    return answer;
  };
}
