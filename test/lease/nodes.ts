import { Redis } from 'ioredis';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { FencedLockEvent } from '../../src/base/events.js';
import { Renewal } from '../../src/lease/renewal.js';
import { WaitingRoom, type WaitingRoomOptions } from '../../src/lease/waiting-room.js';
import { QuorumStore } from '../../src/lease/quorum.js';
import { RedisStore } from '../../src/redis/store.js';
import { type RedisServer, startRedis } from '../support/servers/index.js';
import { leaseName, PREFIX, queueName } from './actors.js';
import { ObservedStore } from './observed-store.js';

/** Servers that know nothing of each other, started before the tests of the current suite and empty after each. */
export function startNodes(count: number): () => readonly RedisServer[] {
  const nodes: RedisServer[] = [];
  beforeAll(async () => {
    for (let each = 0; each < count; each++) nodes.push(await startRedis());
  });
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  });
  return () => nodes;
}
