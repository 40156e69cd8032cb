import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import type { Claim, LeaseStore } from '../../src/waiting/store.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { PREFIX, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';
import { storeActor } from './store-actor.js';

const MEGABYTE = 1 << 20;
/** No other client is served meanwhile. In CPU time, which does not depend on what else the machine does; milliseconds. */
const LONGEST_COMMAND = 10;

const TEXTS: Record<string, string> = {
  spaces: ' '.repeat(MEGABYTE),
  letters: 'a'.repeat(MEGABYTE),
  'letters and spaces': 'a '.repeat(MEGABYTE / 2),
  'digits behind a lease': `${randomUUID()} ${'1 '.repeat(MEGABYTE / 2)}x`,
};

describeWithRedis('a megabyte that other software has written', (redis) => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());

  const remove = (key: string) => admin.del(namesOf(PREFIX, key).lease, namesOf(PREFIX, key).queue);
  type Put = (name: string) => Promise<unknown>;
  const texts = (put: (name: string, text: string) => Promise<unknown>) =>
    Object.entries(TEXTS).map(([what, text]): [string, Put] => [what, (name) => put(name, text)]);
  const OF_LEASES: Array<[what: string, put: Put]> = [
    ...texts((name, text) => admin.set(name, text)),
    ['a list', (name) => admin.rpush(name, TEXTS['letters'] as string)],
    ['a hash', (name) => admin.hset(name, 'field', TEXTS['letters'] as string)],
  ];
  const OF_QUEUES: Array<[what: string, put: Put]> = [
    ...texts((name, text) => admin.rpush(name, text)),
    [
      'entries that look like ours',
      (name) => admin.rpush(name, ...Array<string>(MEGABYTE / 16).fill('a a a a a a a a ')),
    ],
    ['a text', (name) => admin.set(name, TEXTS['letters'] as string)],
    ['a hash', (name) => admin.hset(name, 'field', TEXTS['letters'] as string)],
  ];

  const VERBS: Record<string, (store: LeaseStore, claim: Claim) => Promise<unknown>> = {
    'acquire of the holder': (store, claim) => store.acquire(claim),
    'acquire of a contender': (store, { key }) => store.acquire(claimOf(key), { enter: 60_000 }),
    extend: (store, claim) => store.extend([claim]),
    yield: (store, claim) => store.yield(claim),
    hint: async (store, claim) => await store.hint?.(claim),
    transfer: (store, claim) => store.transfer(claim, randomUUID()),
    release: (store, claim) => store.release(claim),
    'acquire of the free key': async (store, claim) => {
      await admin.del(namesOf(PREFIX, claim.key).lease);
      await store.acquire(claim, { enter: 60_000 });
    },
    inspect: (store, { key }) => store.inspect(key, 100),
    list: (store) => store.list(),
    force: (store, { key }) => store.force(key, ''),
  };

  const makeStore = () => storeActor(new Redis(redis().url)).store;

  /** CPU time of the server; milliseconds. */
  async function used(): Promise<number> {
    const said = await admin.info('cpu');
    const [user, system] = ['user', 'sys'].map((kind) =>
      Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(said)?.[1]),
    );
    return ((user as number) + (system as number)) * 1_000;
  }

  describe.each([
    ['lease', OF_LEASES],
    ['queue', OF_QUEUES],
  ] as const)('in the place of the %s', (part, values) => {
    test.each(values)('%s: no command keeps the server for long, and list and force know it', async (_, put) => {
      const store = makeStore();
      const times: Record<string, number> = {};
      for (const [verb, run] of Object.entries(VERBS)) {
        const claim = claimOf(someKey());
        const name = namesOf(PREFIX, claim.key)[part];
        await store.acquire(claim);
        await admin.del(name);
        await put(name);
        const before = await used();
        await run(store, claim).catch(() => {});
        times[verb] = (await used()) - before;
        await remove(claim.key);
      }
      expect(Object.entries(times).filter(([, time]) => time > LONGEST_COMMAND)).toEqual([]);

      const key = someKey();
      const name = namesOf(PREFIX, key)[part];
      await put(name);
      const problem = `In Redis ${JSON.stringify(name)} has a value that this package did not write`;
      expect(await store.list()).toMatchObject([{ key, problem }]);
      expect(await store.force(key, '')).toBe(true);
      expect(await admin.exists(name)).toBe(0);
      expect(await store.acquire(claimOf(key))).toMatchObject({ taken: true });
      await remove(key);
    });
  });

  test('as a message: whoever waits looks, and no more', async () => {
    const store = makeStore();
    const { key, holder } = claimOf(someKey());
    const heard: unknown[] = [];
    const watch = await store.watch(key, (wakeUp) => heard.push(wakeUp));
    for (const text of [...Object.values(TEXTS), `next ${holder} ${holder} ${TEXTS['letters']}`]) {
      await admin.publish(namesOf(PREFIX, key).wake, text);
    }
    await expect.poll(() => heard.length).toBe(Object.keys(TEXTS).length + 1);
    expect(new Set(heard)).toEqual(new Set(['look']));
    watch.close();
  });
});
