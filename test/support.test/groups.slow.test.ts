import type { Cluster, Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { connectTo, type RedisSite } from '../support/redis-site.js';
import { startCluster, startSentinelGroup, startValkey, valkeyUnavailable } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';

const HEALS_WITHIN = { within: 20_000, every: 50 };

function client(site: RedisSite): Redis | Cluster {
  const { redis, close } = connectTo(site);
  onTestFinished(close);
  return redis as Redis | Cluster;
}

const writes = (redis: Redis | Cluster) => () => redis.set('a', '1').catch(() => undefined);

describeWithGroup('a Sentinel group', startSentinelGroup, (group) => {
  test('goes on with another master when the first is killed, and heals', async () => {
    const redis = client(group().site);
    await redis.set('a', '0');
    const first = await group().ownerOf('a');
    await first.killHard();
    expect(await group().isWhole()).toBe(false);
    await eventually('writes are taken again', writes(redis), HEALS_WITHIN);
    // Those of the others that have not heard of it yet say so, too.
    await eventually('another is said to be it', async () => (await group().ownerOf('a')).port !== first.port);
    await first.start();
    await eventually('it is whole', group().isWhole, HEALS_WITHIN);
  });
});

describeWithGroup('a Cluster', startCluster, (cluster) => {
  test('goes on with the replica when a master is frozen, and heals when it thaws', async () => {
    const redis = client(cluster().site);
    await redis.set('a', '0');
    const first = await cluster().ownerOf('a');
    first.freeze();
    await eventually('writes are taken again', writes(redis));
    expect((await cluster().ownerOf('a')).port).not.toBe(first.port);
    first.thaw();
    await eventually('it is whole', cluster().isWhole, HEALS_WITHIN);
  });

  test('a slot moves with what is in it', async () => {
    const redis = client(cluster().site);
    await redis.set('b', '2');
    const before = await cluster().ownerOf('b');
    await cluster().reshard('b');
    expect((await cluster().ownerOf('b')).port).not.toBe(before.port);
    expect(await redis.get('b')).toBe('2');
  });
});

describeWithGroup(
  'Valkey',
  startValkey,
  (server) => {
    test('says its own version', () => expect(server().version).toMatch(/^([89]|\d\d)\./));
  },
  valkeyUnavailable(),
);
