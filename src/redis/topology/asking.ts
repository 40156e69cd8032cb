import type { ClusterClient } from '../client.js';
import { listen } from '../shared-listeners.js';

interface AskingNode {
  asking?(...given: unknown[]): Promise<unknown>;
}

/** The clients of nodes whose ASKING is handled. */
const handled = new WeakSet<object>();

/**
 * Handles rejections of ASKING, which would otherwise end the process. While a slot moves, ioredis (up to 6.0) sends ASKING
 * in front of a command, and drops its promise. If the node does not answer within the client's `commandTimeout`, that
 * promise rejects: an unhandled rejection.
 *
 * @returns the function that stops listening to the client for new nodes.
 */
export function handleAsking(redis: ClusterClient): () => void {
  const handleAll = () => {
    for (const node of redis.nodes('all')) handle(node as AskingNode);
  };
  handleAll();
  return listen(redis, '+node', handleAll);
}

function handle(node: AskingNode): void {
  const { asking } = node;
  if (asking === undefined || handled.has(node)) return;
  handled.add(node);
  node.asking = (...given) => {
    const answer = asking.apply(node, given);
    answer.catch(() => {});
    return answer;
  };
}
