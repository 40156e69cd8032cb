import type { RedisServer } from '../../../src/addons/testing/servers/redis.js';
import { redisOnPath, startProgram } from '../../../src/addons/testing/servers/redis.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';
import { wallClock } from './wall-clock.js';

/** Why `startValkey` would throw, in a sentence; undefined if it would not. */
export function valkeyUnavailable(): string | undefined {
  return redisOnPath(['valkey-server']) === undefined ? UNAVAILABLE : undefined;
}

const UNAVAILABLE =
  'valkey-server is not on PATH; Debian has it in bookworm-backports (apt-get install valkey-server).';

export async function startValkey(args: readonly string[] = []): Promise<RedisServer> {
  const program = redisOnPath(['valkey-server']);
  if (program === undefined) throw new ServerUnavailable(UNAVAILABLE);
  return await startProgram({ ...program, env: wallClock }, args);
}
