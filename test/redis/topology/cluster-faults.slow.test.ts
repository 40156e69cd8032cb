import { expect, onTestFinished, test, vi } from 'vitest';
import { FallbackStore } from '../../../src/stores/fallback.js';
import type { Turn } from '../../../src/waiting/turn.js';
import { eventually } from '../../support/eventually.js';
import type { RedisServer } from '../../support/servers/index.js';
import { startCluster } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, someKey } from '../../waiting/actors.js';
import { type ClientOptions, ClusterActor, type ClusterActorOptions } from './cluster-actor.js';

const HEALS = { within: 30_000, every: 50 };
/** Reads the slots every second; a client that does not has to be told that they have changed. */
const ALERT = { slotsRefreshInterval: 1_000, slotsRefreshTimeout: 500 };
const SOON = { commandTimeout: 500, connectTimeout: 1_000, disconnectTimeout: 200 };

/** Gives a way to make all well again. */
type Fault = (key: string, owner: RedisServer) => Promise<() => unknown>;

/** Longer than any test, so who gets on does so by a wake-up; and how long the nodes of a busy machine may take to agree. */
const LEASE = { leaseTime: 600_000 };
const TEST_TIME = 90_000;

describeWithGroup('a Cluster whose key moves while it is held and awaited', startCluster, (cluster) => {
  vi.setConfig({ testTimeout: TEST_TIME });

  const killed: Fault = async (_, owner) => {
    await owner.killHard();
    return () => owner.start();
  };
  const faults: Record<string, Fault> = {
    'its slot moves to another master': async (key) => {
      await cluster().reshard(leaseName(key));
      return () => {};
    },
    'its master changes places with the replica': async (key) => {
      await cluster().failOver(leaseName(key));
      return () => {};
    },
    'its master is killed': killed,
    'its master freezes, and thaws later': async (_, owner) => {
      owner.freeze();
      return () => owner.thaw();
    },
  };

  async function stage(client: ClientOptions, key = someKey()) {
    const options = { client: { ...client, redisOptions: SOON } };
    const make = () => new ClusterActor(cluster(), options);
    const [holder, first, second] = [make(), make(), make()];
    const held = await holder.acquire(key, LEASE);
    const waiters = [await first.asleep(key, LEASE), await second.asleep(key, LEASE)] as const;
    const owner = await cluster().ownerOf(leaseName(key));
    return { key, holder, held, waiters, owner };
  }

  test.for(Object.entries(faults))('%s, just before it is released: both get it', async ([name, fault]) => {
    // Nothing tells a client of a master that froze, but the slots that it reads: the docs say so.
    const { key, held, waiters, owner } = await stage(name.includes('freezes') ? ALERT : {});
    await cluster().replicated(leaseName(key));
    const mend = mending(await fault(key, owner));
    held.end();
    await bothGetIt(waiters);
    await mend();
    await eventually('it is whole', cluster().isWhole, HEALS);
  });

  test('its master is killed with all that the replica has not heard of: both get it, by what is left', async () => {
    const key = someKey();
    const thaw = mending(await cluster().cutOffReplica(leaseName(key)));
    const { waiters, owner } = await stage(ALERT, key);
    const mend = mending(await killed(key, owner));
    await thaw();
    // The lease is lost with its master, so the first takes the key; the second has lost its place in the queue.
    await bothGetIt(waiters);
    await mend();
    await eventually('it is whole', cluster().isWhole, HEALS);
  });

  test('a master that falls silent is done without for its own keys alone, where calls may go on without Redis', async () => {
    const wrap: ClusterActorOptions['wrap'] = (store, emit) => new FallbackStore(store, emit);
    const actor = new ClusterActor(cluster(), { client: { ...ALERT, redisOptions: SOON }, store: SOON, wrap });
    const key = someKey();
    await actor.release(await actor.acquire(key));
    const owner = await cluster().ownerOf(leaseName(key));
    let other = someKey();
    while ((await cluster().ownerOf(leaseName(other))).port === owner.port) other = someKey();
    owner.freeze();
    const thaw = mending(() => owner.thaw());
    const [turn, its] = [await actor.acquire(key), await actor.acquire(other)];
    expect([turn.lease.shared, its.lease.shared]).toEqual([true, false]);
    await Promise.all([actor.release(turn), actor.release(its)]);
    await thaw();
    const types = () => actor.events.map(({ type }) => type).filter((type) => type.startsWith('redis-'));
    const isBack = async () => {
      await actor.release(await actor.acquire(other));
      return types().length === 2;
    };
    await eventually('the probe of another key finds it back', isBack, HEALS);
    expect(types()).toEqual(['redis-passed-by', 'redis-back']);
    await eventually('it is whole', cluster().isWhole, HEALS);
  });
});

async function bothGetIt(waiters: readonly { turn: Promise<Turn> }[]): Promise<void> {
  await Promise.all(waiters.map(({ turn }) => turn.then((taken) => taken.end())));
}

/** Once, and also where the test fails: the next one needs a whole Cluster. */
function mending(mend: () => unknown): () => Promise<unknown> {
  let mended: Promise<unknown> | undefined;
  const once = () => {
    mended ??= Promise.resolve(mend());
    return mended;
  };
  onTestFinished(async () => void (await once()));
  return once;
}
