import { randomUUID } from 'node:crypto';
import { OVERDUE, within } from '../../base/clock.js';
import { DOCS } from '../../base/errors.js';
import { Reply } from '../../base/reply.js';
import type { Claim, LeaseStore } from '../../waiting/store.js';
import { messageOf } from '../problem.js';
import type { Info } from '../servers/redis.js';
import { type Checks, fault, warning } from './check.js';

/** What the checks of Redis need. */
interface RedisSubject {
  readonly info: Info;
  /** A key that this server stores and that nobody holds. */
  readonly key: string;
  readonly store: LeaseStore;
  /** The same store without pub/sub, as with `wake: 'poll'`. */
  readonly silent: LeaseStore;
}

const NEARLY_FULL = 0.9;
/** How long a test key may stay, if releasing it is what fails; milliseconds. */
const LEASE_TIME = 5_000;
const HEARD_WITHIN = 2_000;

export const redisChecks: Checks<RedisSubject> = {
  async version({ info }) {
    const valkey = info.get('valkey_version');
    if (valkey !== undefined) return `Valkey ${valkey}.`;
    const text = info.get('redis_version') ?? '';
    const [major = 0, minor = 0] = text.split('.').map(Number);
    if (major > 6 || (major === 6 && minor >= 2)) return `Redis ${text}.`;
    const message = `Redis ${text || 'of an unknown version'} is older than 6.2.`;
    return fault(message, 'Upgrade the server to Redis 6.2 or later.');
  },

  async role({ info }) {
    if (info.get('cluster_enabled') === '1') {
      return 'A node of a Cluster: the application needs new Cluster([…]), since one server is refused most keys.';
    }
    if (info.get('role') !== 'slave') return 'Writes are possible.';
    return fault('This server is a read-only replica.', 'Connect to the primary, or through Sentinel.');
  },

  async memory({ info }) {
    const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory') ?? 0)];
    if (most === 0) return 'No maxmemory.';
    const share = `${Math.round((100 * used) / most)} % of maxmemory is used.`;
    if (info.get('maxmemory_policy') !== 'noeviction' || used < most * NEARLY_FULL) return share;
    const remedy = 'Raise maxmemory, or give the locks a server of their own.';
    if (used < most) return warning(share, remedy);
    return fault(`${share} A caller that has to wait for a lock gets no place in the queue.`, remedy);
  },

  async eviction({ info }) {
    const policy = info.get('maxmemory_policy') ?? 'noeviction';
    if (policy === 'noeviction') return 'maxmemory-policy is noeviction.';
    return warning(
      `maxmemory-policy is ${policy}: with memory short, leases are evicted, and their work is rolled back.`,
      'Set it to noeviction, or give the locks a server of their own.',
    );
  },

  /** Runs what a lock needs, on a key that nobody holds. */
  async scripts({ silent: store, key }) {
    const [claim, contender] = [claimOf(key), claimOf(key)];
    try {
      await store.acquire(claim);
      const [extension] = await store.extend([claim]);
      if (extension instanceof Error) throw extension;
      await store.yield(claim);
      await store.transfer(claim, contender.holder);
      await store.force(key, contender.holder);
      await behindHolder(store, key, () => Promise.resolve());
      return 'A lock was taken, extended and released.';
    } catch (error) {
      const remedy = `See "Hardening" in ${DOCS}topologies.md, and ${DOCS}rights.md.`;
      return fault(`A lock was refused: ${messageOf(error)}.`, remedy);
    }
  },

  /** Whether a process that waits receives the wake-up of a release. */
  async 'wake-ups'({ store, key }) {
    const remedy = "let the application use wake: 'poll'.";
    try {
      const heard = new Reply<void>();
      const watch = await store.watch(key, () => heard.resolve());
      const answer = await behindHolder(store, key, async (holder) => {
        await store.hint?.(holder);
        await store.release(holder);
        return await within(heard.promise, HEARD_WITHIN);
      });
      watch.close();
      if (answer !== OVERDUE) return 'The wake-up of a release arrived.';
    } catch (error) {
      return warning(`Wake-ups were refused: ${messageOf(error)}.`, `See ${DOCS}rights.md, or ${remedy}`);
    }
    const message = 'A release was published, but its wake-up did not arrive.';
    return warning(message, `Connect to the server itself, or ${remedy}`);
  },

  /** Whether the names of those who wait can be read (LRANGE). Only people need them. */
  async views({ silent: store, key }) {
    const { waiters } = await behindHolder(store, key, () => store.inspect(key, 1));
    if (waiters !== undefined) return 'Who waits can be shown.';
    const message = 'The names of who waits cannot be shown. Locks work without.';
    return warning(message, `Grant +lrange to this user, as ${DOCS}rights.md says.`);
  },
};

/** Does something while one has the key and another waits for it. */
async function behindHolder<T>(store: LeaseStore, key: string, work: (holder: Claim) => Promise<T>): Promise<T> {
  const [holder, contender] = [claimOf(key), claimOf(key)];
  await store.acquire(holder);
  await store.acquire(contender, { enter: LEASE_TIME });
  const result = await work(holder);
  await store.release(contender);
  await store.release(holder);
  return result;
}

const claimOf = (key: string): Claim => ({ key, holder: randomUUID(), leaseTime: LEASE_TIME });
