import { type RedisProgram, redisOnPath, startProgram } from '../../../src/addons/testing/servers/redis.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';
import type { Supervised } from '../../../src/addons/testing/servers/supervised.js';
import { inCI } from '../ci.js';
import { eventually } from '../eventually.js';
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

export function programForGroups(kinds?: Parameters<typeof redisOnPath>[0]): RedisProgram {
  const program = redisOnPath(kinds);
  if (program === undefined) throw new ServerUnavailable(UNAVAILABLE);
  return program;
}

/** If one of them cannot be started, the others end with this process. */
export function startAll(
  count: number,
  more: readonly string[] = [],
  program: RedisProgram = programForGroups(),
): Promise<[RedisServer, ...RedisServer[]]> {
  const starting = Array.from({ length: count }, () => startProgram(program, more));
  return Promise.all(starting) as Promise<[RedisServer, ...RedisServer[]]>;
}

/** Resolves when they play their parts. */
export async function untilWhole<Group extends RedisGroup>(group: Group): Promise<Group> {
  await eventually('the group is whole', group.isWhole, { within: 20_000, every: 50 });
  return group;
}

export async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}
