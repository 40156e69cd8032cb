import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import * as scripts from '../../src/redis/scripts.generated.js';
import type { Turn } from '../../src/waiting/turn.js';
import { Monitor } from '../redis/monitor.js';
import { untilHolds } from '../support/eventually.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { Actor, type ActorOptions, type Asked, leaseName, type Party, queueName, receivers } from './actors.js';

/** What the tests of the waiting room work with: the shared Redis, a line to it that can be broken, and who watches. */
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

export function direct(options: Omit<ActorOptions, 'url'> = {}): Actor {
  return new Actor({ url: url(), ...options });
}

export function throughProxy({ proxy }: Stage, options: Omit<ActorOptions, 'url'> = {}): Actor {
  return new Actor({ url: proxy.url(url()), ...options });
}

/** A contender that has looked twice, has its place in the queue, and sleeps. */
export async function asleep(contender: Party, key: string, asked: Asked = {}): Promise<{ turn: Promise<Turn> }> {
  const before = contender.store.answers.count;
  const turn = contender.acquire(key, asked);
  await contender.store.answers.reach(before + 2);
  return { turn };
}

/** The names of the scripts that the server was sent about the key, and the other commands by their own. */
export async function sentAbout({ monitor }: Stage, key: string): Promise<string[]> {
  const names = namesOfScripts(await monitor.about(key));
  // A file that runs beside this one may list all keys, and so ask about each.
  return names.filter((name) => name !== 'inspect');
}

export function namesOfScripts(lines: readonly string[][]): string[] {
  const names = new Map(Object.values(scripts).map(({ sha1, name }) => [sha1, name]));
  return lines.map(([verb, sha1]) => names.get(sha1 ?? '') ?? verb ?? '');
}

/** Nobody waits, has a turn, or has something to give back; no place in the queue, no subscription. */
export async function expectNothingLeft({ admin }: Stage, contender: Party, key: string): Promise<void> {
  expect(contender.room.waitingByKey().has(key)).toBe(false);
  // Turns nobody away, and resolves only where nothing is left.
  await contender.room.close();
  expect(contender.room.isFree(key)).toBe(true);
  await untilHolds(async () => expect(await receivers(admin, key)).toBe(0));
  expect(await admin.exists(queueName(key))).toBe(0);
}

/** Nobody has the key, and nobody waits for it. */
export async function expectFree({ admin }: Stage, key: string): Promise<void> {
  expect(await admin.exists(leaseName(key), queueName(key))).toBe(0);
}
