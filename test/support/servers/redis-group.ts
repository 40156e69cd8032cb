import { type RedisProgram, redisOnPath, startProgram } from '../../../src/addons/testing/servers/redis.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';
import type { Supervised } from '../../../src/addons/testing/servers/supervised.js';
import { inCI } from '../ci.js';
import type { RedisSite } from '../redis-site.js';

export type RedisServer = Supervised;

/** Servers that together are one Redis, to be hurt one by one. */
export interface RedisGroup {
  readonly site: RedisSite;
  /** That keep data. */
  readonly nodes: readonly RedisServer[];
  /** What stands in the report. */
  readonly about: string;
  /** Whether all of them are up, and play the parts that they should: no fault is left. */
  isWhole(): Promise<boolean>;
  stop(): Promise<void>;
}

/** One in which another node takes over from one that is gone. */
export interface FailoverGroup extends RedisGroup {
  /** The node that takes the writes of this name. */
  ownerOf(name: string): Promise<RedisServer>;
  /** As an operator has it, with all nodes healthy. Resolves when the servers have begun. */
  failOver(name: string): Promise<void>;
}

/** Why no group can be started, in a sentence; undefined if one can, or has to. */
export function groupsUnavailable(): string | undefined {
  return redisOnPath() === undefined && !inCI() ? UNAVAILABLE : undefined;
}

const UNAVAILABLE =
  'Neither redis-server nor valkey-server is on PATH, and only servers that are started here can be hurt.';

export function programForGroups(): RedisProgram {
  const program = redisOnPath();
  if (program === undefined) throw new ServerUnavailable(UNAVAILABLE);
  return program;
}

/** All or none: what has started is stopped if another one fails. */
export async function startAll(
  count: number,
  more: (index: number) => readonly string[],
  program: RedisProgram = programForGroups(),
): Promise<RedisServer[]> {
  const started = await Promise.allSettled(
    Array.from({ length: count }, (_, index) => startProgram(program, more(index))),
  );
  const servers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failed = started.find((each) => each.status === 'rejected');
  if (failed === undefined) return servers;
  await stopAll(servers);
  throw failed.reason;
}

export async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}
