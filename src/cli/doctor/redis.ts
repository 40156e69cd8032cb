import { randomUUID } from 'node:crypto';
import { OVERDUE, within } from '../../base/clock.js';
import { DOCS } from '../../base/errors.js';
import { Reply } from '../../base/reply.js';
import type { Claim, LeaseStore } from '../../waiting/store.js';
import { messageOf } from '../problem.js';
import { type Check, fault, ok, warning } from './check.js';

/** What the checks of Redis need. */
interface RedisSubject {
  /** The fields of INFO. */
  readonly info: ReadonlyMap<string, string>;
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

const version: Check<RedisSubject> = {
  name: 'version',
  essential: true,
  async look({ info }) {
    const valkey = info.get('valkey_version');
    if (valkey !== undefined) return ok(`Valkey ${valkey}.`);
    const text = info.get('redis_version') ?? '';
    const [major = 0, minor = 0] = text.split('.').map(Number);
    if (major > 6 || (major === 6 && minor >= 2)) return ok(`Redis ${text}.`);
    const message = `Redis ${text || 'of an unknown version'} is older than 6.2.`;
    return fault(message, 'Upgrade the server to Redis 6.2 or later.');
  },
};

const modeOf = (info: RedisSubject['info']) => info.get('redis_mode') ?? info.get('server_mode');

const role: Check<RedisSubject> = {
  name: 'role',
  essential: true,
  async look({ info }) {
    if (info.get('role') !== 'slave') return ok('Writes are possible.');
    if (modeOf(info) === 'cluster') return ok('A replica, which knows the way to its master.');
    return fault('This server is a read-only replica.', 'Connect to the primary, or through Sentinel.');
  },
};

const mode: Check<RedisSubject> = {
  name: 'mode',
  essential: true,
  async look({ info }) {
    switch (modeOf(info)) {
      case 'sentinel':
        return fault(
          'This is a Sentinel: it knows where the primary is, and keeps nothing.',
          'Give the URL of the primary here, which SENTINEL get-master-addr-by-name says; in the application new Redis({ sentinels, name }).',
        );
      case 'cluster':
        return ok(
          'A node of a Cluster: the application needs new Cluster([…]), since one server is refused most keys.',
        );
      default:
        return ok('One server.');
    }
  },
};

const memory: Check<RedisSubject> = {
  name: 'memory',
  async look({ info }) {
    const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory') ?? 0)];
    if (most === 0) return ok('No maxmemory.');
    const share = `${Math.round((100 * used) / most)} % of maxmemory is used.`;
    if (info.get('maxmemory_policy') !== 'noeviction' || used < most * NEARLY_FULL) return ok(share);
    const remedy = 'Raise maxmemory, or give the locks a server of their own.';
    if (used < most) return warning(share, remedy);
    return fault(`${share} A caller that has to wait for a lock gets no place in the queue.`, remedy);
  },
};

const eviction: Check<RedisSubject> = {
  name: 'eviction',
  async look({ info }) {
    const policy = info.get('maxmemory_policy') ?? 'noeviction';
    if (policy === 'noeviction') return ok('maxmemory-policy is noeviction.');
    return warning(
      `maxmemory-policy is ${policy}: with memory short, leases are evicted, and their work is rolled back.`,
      'Set it to noeviction, or give the locks a server of their own.',
    );
  },
};

const persistence: Check<RedisSubject> = {
  name: 'persistence',
  async look({ info }) {
    if (info.get('aof_enabled') === '1') return ok('An append-only file is kept.');
    return ok('No append-only file: a restart may forget leases. Their work is rolled back; no update is lost.');
  },
};

const replicas: Check<RedisSubject> = {
  name: 'replicas',
  async look({ info }) {
    const count = Number(info.get('connected_slaves') ?? 0);
    if (count === 0) return ok('None is connected.');
    return ok(
      `${count} connected: a failover may forget the last leases. Their work is rolled back; no update is lost.`,
    );
  },
};

/** Runs what a lock needs, on a key that nobody holds. */
const scripts: Check<RedisSubject> = {
  name: 'scripts',
  essential: true,
  async look({ silent: store, key }) {
    const [claim, contender] = [claimOf(key), claimOf(key)];
    try {
      await store.acquire(claim);
      const [extension] = await store.extend([claim]);
      if (extension instanceof Error) throw extension;
      await store.yield(claim);
      await store.transfer(claim, contender.holder);
      await store.force(key, contender.holder);
      await store.acquire(claim);
      await store.acquire(contender, { enter: LEASE_TIME });
      await store.release(contender);
      await store.release(claim);
      return ok('A lock was taken, extended and released.');
    } catch (error) {
      return fault(
        `A lock was refused: ${messageOf(error)}.`,
        `See "Hardening" in ${DOCS}topologies.md, and ${DOCS}rights.md.`,
      );
    }
  },
};

/** Whether a process that waits receives the wake-up of a release. */
const wakeUps: Check<RedisSubject> = {
  name: 'wake-ups',
  async look({ store, key }) {
    const [holder, contender] = [claimOf(key), claimOf(key)];
    const remedy = "let the application use wake: 'poll'.";
    try {
      const heard = new Reply<void>();
      const watch = await store.watch(key, () => heard.resolve());
      await store.acquire(holder);
      await store.acquire(contender, { enter: LEASE_TIME });
      await store.hint?.(holder);
      await store.release(holder);
      const answer = await within(heard.promise, HEARD_WITHIN);
      await store.release(contender);
      watch.close();
      if (answer !== OVERDUE) return ok('The wake-up of a release arrived.');
    } catch (error) {
      return warning(`Wake-ups were refused: ${messageOf(error)}.`, `See ${DOCS}rights.md, or ${remedy}`);
    }
    const message = 'A release was published, but its wake-up did not arrive.';
    return warning(message, `Connect to the server itself, or ${remedy}`);
  },
};

/** Whether the names of those who wait can be read (LRANGE). Only people need them. */
const views: Check<RedisSubject> = {
  name: 'views',
  async look({ silent: store, key }) {
    const [holder, contender] = [claimOf(key), claimOf(key)];
    await store.acquire(holder);
    await store.acquire(contender, { enter: LEASE_TIME });
    const { waiters } = await store.inspect(key, 1);
    await store.release(contender);
    await store.release(holder);
    if (waiters !== undefined) return ok('Who waits can be shown.');
    const message = 'The names of who waits cannot be shown. Locks work without.';
    return warning(message, `Grant +lrange to this user, as ${DOCS}rights.md says.`);
  },
};

const claimOf = (key: string): Claim => ({ key, holder: randomUUID(), leaseTime: LEASE_TIME });

export const redisChecks = [version, role, mode, memory, eviction, persistence, replicas, scripts, wakeUps, views];
