import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, inject, vi } from 'vitest';
import type { Held } from '../../src/lease/acquire.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { Monitor } from '../redis/monitor.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { Actor, type ActorOptions, receivers } from './actors.js';
import { timers } from './counted-clock.js';

/** What the tests of `acquire` work with: the shared Redis, a line to it that can be broken, and who watches. */
export interface Stage {
  /** Past every lock. */
  readonly admin: Redis;
  readonly proxy: FaultProxy;
  readonly monitor: Monitor;
}

/** Set before the tests of the current suite. */
export function setStage(): () => Stage {
  let stage: Stage | undefined;
  beforeAll(async () => {
    const { hostname, port } = new URL(url());
    const admin = new Redis(url());
    const proxy = await startFaultProxy({ host: hostname, port: Number(port) });
    stage = { admin, proxy, monitor: await Monitor.start(url()) };
    // So that a command is known by the hash of its script.
    for (const { lua } of Object.values(scripts)) await admin.script('LOAD', lua);
  });
  afterEach(() => {
    // One that fails must not make the next ones fail.
    timers.clear();
    stage?.proxy.latency(0);
    stage?.proxy.resume();
  });
  afterAll(async () => {
    stage?.monitor.stop();
    stage?.admin.disconnect();
    await stage?.proxy.close();
  });
  return () => {
    if (stage === undefined) throw new Error('The stage is not set yet: use it in a test.');
    return stage;
  };
}

function url(): string {
  return inject('redis').url as string;
}

export function direct(): Actor {
  return new Actor({ url: url() });
}

export function throughProxy({ proxy }: Stage, options: Omit<ActorOptions, 'url'> = {}): Actor {
  return new Actor({ url: proxy.url(url()), ...options });
}

/** A contender that has looked twice and sleeps. */
export async function asleep(
  contender: Actor,
  key: string,
  options: Parameters<Actor['acquire']>[1] = {},
): Promise<{ held: Promise<Held> }> {
  const held = contender.acquire(key, options);
  await contender.store.answers.reach(2);
  return { held };
}

/** No place in the queue, no subscription, no timer. */
export async function expectNothingLeft({ admin }: Stage, contender: Actor, key: string): Promise<void> {
  expect(contender.queue.waiting(key)).toBe(0);
  // A place in the queue that was not given back would keep this one waiting.
  const turn = await contender.queue.enter(key, async () => {});
  expect(turn).toBeDefined();
  turn?.leave();
  await vi.waitFor(async () => expect(await receivers(admin, key)).toBe(0));
  expect(timers.size).toBe(0);
}
