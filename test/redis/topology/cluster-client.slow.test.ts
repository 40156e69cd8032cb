import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { askServer } from '../../../src/addons/testing/servers/redis.js';
import type { ClusterClient } from '../../../src/redis/client.js';
import { RedisStore } from '../../../src/redis/store.js';
import { slotOf } from '../../../src/redis/topology/slot.js';
import { eventually } from '../../support/eventually.js';
import type { RedisServer } from '../../support/servers/index.js';
import { startCluster } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, PREFIX, someKey } from '../../waiting/actors.js';
import { claimOf } from '../../waiting/claims.js';
import { ClusterActor, type ClusterActorOptions } from './cluster-actor.js';

describeWithGroup('a client of a Cluster', startCluster, (cluster) => {
  const actor = (options?: ClusterActorOptions) => new ClusterActor(cluster(), options);

  test.each(['before', 'after'])(
    'a node that is silent while it takes over a slot does not end the process: known %s the store',
    async (known) => {
      const nodes = cluster().nodes.map(({ host, port }) => ({ host, port }));
      const redis = new Cluster(nodes, { redisOptions: { commandTimeout: 100 } });
      redis.on('error', () => {});
      if (known === 'before') await redis.ping();
      const settings = { keyPrefix: PREFIX, commandTimeout: 2_000 };
      const store = new RedisStore(redis as unknown as ClusterClient, settings, () => {});
      onTestFinished(async () => {
        await store.close();
        redis.disconnect();
      });
      const key = someKey();
      const slot = slotOf(leaseName(key));
      const unhandled: unknown[] = [];
      const note = (reason: unknown) => unhandled.push(reason);
      process.on('unhandledRejection', note);
      onTestFinished(() => void process.off('unhandledRejection', note));
      await redis.ping();
      const owner = await cluster().ownerOf(leaseName(key));
      const other = redis.nodes('master').find(({ options }) => options.port !== owner.port);
      await other?.ping();
      const next = cluster().nodes.find(({ port }) => port === other?.options.port) as RedisServer;
      const [ownerId, nextId] = await Promise.all([owner, next].map(({ url }) => askServer(url, 'CLUSTER', 'MYID')));
      await askServer(next.url, 'CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', `${ownerId}`);
      await askServer(owner.url, 'CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', `${nextId}`);
      next.freeze();
      try {
        await expect(store.acquire(claimOf(key))).rejects.toThrow('timed out');
        await new Promise((resolve) => setImmediate(resolve));
      } finally {
        next.thaw();
        for (const { url } of [owner, next]) await askServer(url, 'CLUSTER', 'SETSLOT', `${slot}`, 'STABLE');
      }
      expect(unhandled).toEqual([]);
    },
  );

  test('that was closed is refused at once, and has what it asks for when it is connected again', async () => {
    const closed = actor();
    const key = someKey();
    (await closed.acquire(key)).end();
    await closed.store.released.settled();
    const ended = new Promise<void>((resolve) => closed.redis.once('end', () => resolve()));
    closed.redis.disconnect();
    await ended;
    await eventually('its last node has closed', async () => closed.redis.status === 'close');
    await expect(closed.acquire(key, { waitTime: 600_000 })).rejects.toThrow('was closed, so Redis was not asked');
    await closed.redis.connect();
    (await closed.acquire(key)).end();
  });

  test('keys that were asked for while their master was frozen are free when their turns on the promoted one have ended', async () => {
    const redisOptions = { connectTimeout: 1_000, disconnectTimeout: 200 };
    const client = { slotsRefreshInterval: 1_000, slotsRefreshTimeout: 500, retryDelayOnFailover: 1_000, redisOptions };
    const caller = actor({ client, store: { commandTimeout: 200 } });
    const owner = await cluster().ownerOf(leaseName(''));
    const keys: string[] = [];
    while (keys.length < 10) {
      const key = someKey();
      if ((await cluster().ownerOf(leaseName(key))) === owner) keys.push(key);
    }
    for (const key of keys) await caller.release(await caller.acquire(key));
    await cluster().replicated(leaseName(''));
    owner.freeze();
    await Promise.all(keys.map(async (key) => (await caller.acquire(key, { leaseTime: 600_000 })).end()));
    // Then the client has sent again what the frozen one has not answered.
    await sleep(2_000);
    const isFree = async (key: string) => (await caller.store.inspect(key)).holder === undefined;
    await eventually('all are free', async () => (await Promise.all(keys.map(isFree))).every(Boolean));
    owner.thaw();
    await eventually('it is whole', cluster().isWhole, { within: 30_000, every: 50 });
  });

  describe('renewal', () => {
    test('one whose slot has moved is extended where it is now', async () => {
      const { store } = actor();
      const claims = Array.from({ length: 12 }, () => claimOf(someKey()));
      for (const claim of claims) await store.acquire(claim);
      await cluster().reshard(leaseName((claims[0] as { key: string }).key));
      expect(await store.extend(claims)).toEqual(claims.map(() => 'extended'));
    });

    test('a node that does not answer fails its own claims only', async () => {
      const { store } = actor({ store: { commandTimeout: 200 } });
      const claims = Array.from({ length: 12 }, () => claimOf(someKey()));
      for (const claim of claims) await store.acquire(claim);
      const frozen = await cluster().ownerOf(leaseName((claims[0] as { key: string }).key));
      const owners = await Promise.all(claims.map(({ key }) => cluster().ownerOf(leaseName(key))));
      frozen.freeze();
      const answers = await store.extend(claims);
      frozen.thaw();
      expect(answers).toEqual(owners.map(({ port }) => (port === frozen.port ? expect.any(Error) : 'extended')));
      await eventually('it is whole', cluster().isWhole, { within: 30_000, every: 50 });
    });
  });

  test('list finds the keys of every master, each once, also before the client is connected', async () => {
    const [holder, operator] = [actor(), actor({ client: { lazyConnect: true } })];
    const claims = Array.from({ length: 30 }, () => claimOf(someKey()));
    for (const claim of claims) await holder.store.acquire(claim);
    const held = new Set(claims.map(({ key }) => key));
    const listed = (await operator.store.list()).filter(({ key }) => held.has(key));
    expect(listed.map(({ key, holder: by }) => `${key} ${by}`).toSorted()).toEqual(
      claims.map(({ key, holder: by }) => `${key} ${by}`).toSorted(),
    );
  });

  describe('connections', () => {
    test('a watch says that it hears nothing while its master is away, and looks again when it is back', async () => {
      const contender = actor();
      const key = someKey();
      const owner = await cluster().ownerOf(leaseName(key));
      const watch = await contender.store.watch(key, () => {});
      expect(watch.hears).toBe(true);
      await owner.killHard();
      await contender.store.heard.reach(1);
      expect(watch.hears).toBe(false);
      await eventually('it hears again', async () => watch.hears);
      await contender.store.heard.reach(2);
      await owner.start();
      await eventually('it is whole', cluster().isWhole, { within: 30_000, every: 50 });
    });
  });
});
