import { DOCS } from '../../base/errors.js';
import { hearsOfRelease, sendHint, takeAndGiveBack, waitInQueue } from '../locks/rehearsal.js';
import { messageOf } from '../problem.js';
import type { RedisServer } from '../servers/redis-server.js';
import { type Check, fault, ok, warning } from './check.js';

/** What the checks of Redis need. */
export interface RedisSubject {
  /** The fields of INFO. */
  readonly info: ReadonlyMap<string, string>;
  /** A key that this server stores and that nobody holds. */
  readonly key: string;
  readonly store: ReturnType<RedisServer['store']>;
  /** The same store without pub/sub, as with `wake: 'poll'`. */
  readonly silent: ReturnType<RedisServer['store']>;
}

const OLDEST = [6, 2] as const;
const NEARLY_FULL = 0.9;

const version: Check<RedisSubject> = {
  name: 'version',
  essential: true,
  async look({ info }) {
    const valkey = info.get('valkey_version');
    if (valkey !== undefined) return ok(`Valkey ${valkey}.`);
    const text = info.get('redis_version') ?? '';
    const [major = 0, minor = 0] = text.split('.').map(Number);
    if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return ok(`Redis ${text}.`);
    return fault(
      `Redis ${text || 'of an unknown version'} is older than 6.2.`,
      'Upgrade the server to Redis 6.2 or later.',
    );
  },
};

const role: Check<RedisSubject> = {
  name: 'role',
  essential: true,
  async look({ info }) {
    if (info.get('role') !== 'slave') return ok('Writes are possible.');
    if (isOfCluster(info)) return ok('A replica, which knows the way to its master.');
    return fault('This server is a read-only replica.', 'Connect to the primary, or through Sentinel.');
  },
};

const mode: Check<RedisSubject> = {
  name: 'mode',
  essential: true,
  async look({ info }) {
    const text = info.get('redis_mode') ?? info.get('server_mode');
    if (text === 'sentinel') {
      return fault(
        'This is a Sentinel: it knows where the primary is, and keeps nothing.',
        'Give the URL of the primary here, which SENTINEL get-master-addr-by-name says; in the application new Redis({ sentinels, name }).',
      );
    }
    if (!isOfCluster(info)) return ok('One server.');
    return ok('A node of a Cluster: the application needs new Cluster([…]), since one server is refused most keys.');
  },
};

function isOfCluster(info: ReadonlyMap<string, string>): boolean {
  return (info.get('redis_mode') ?? info.get('server_mode')) === 'cluster';
}

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

const scripts: Check<RedisSubject> = {
  name: 'scripts',
  essential: true,
  look: ({ silent, key }) =>
    takeAndGiveBack(silent, key).then(
      () => ok('A lock was taken, extended and released.'),
      (error: unknown) =>
        fault(
          `A lock was refused: ${messageOf(error)}.`,
          `See "Hardening" in ${DOCS}topologies.md, and ${DOCS}rights.md.`,
        ),
    ),
};

const wakeUps: Check<RedisSubject> = {
  name: 'wake-ups',
  async look({ store, key }) {
    try {
      if (!(await hearsOfRelease(store, key))) {
        return warning(
          'A release was published, but its wake-up did not arrive.',
          "Connect to the server itself, or let the application use wake: 'poll'.",
        );
      }
    } catch (error) {
      return warning(
        `Wake-ups were refused: ${messageOf(error)}.`,
        `See ${DOCS}rights.md, or let the application use wake: 'poll'.`,
      );
    }
    return await sendHint(store, key).then(
      () => ok('The wake-up of a release arrived.'),
      (error: unknown) =>
        warning(
          `The hint of a COMMIT was refused: ${messageOf(error)}. The next process begins its work later without it.`,
          `Grant this user what ${DOCS}rights.md names.`,
        ),
    );
  },
};

/** The names of who waits are read for people alone (LRANGE). */
const views: Check<RedisSubject> = {
  name: 'views',
  look: async ({ silent, key }) =>
    (await waitInQueue(silent, key)) !== undefined
      ? ok('Who waits can be shown.')
      : warning(
          'The names of who waits cannot be shown. Locks work without.',
          `Grant +lrange to this user, as ${DOCS}rights.md says.`,
        ),
};

export const redisChecks = [version, role, mode, memory, eviction, persistence, replicas, scripts, wakeUps, views];
