import { type Check, fault, ok, warning } from './check.js';

type Info = ReadonlyMap<string, string>;

const OLDEST = [6, 2] as const;

const version: Check<Info> = {
  name: 'version',
  essential: true,
  async look(info) {
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

const role: Check<Info> = {
  name: 'role',
  async look(info) {
    if (info.get('role') !== 'slave') return ok('Writes are possible.');
    return fault('This server is a read-only replica.', 'Connect to the primary, or through Sentinel.');
  },
};

const eviction: Check<Info> = {
  name: 'eviction',
  async look(info) {
    const policy = info.get('maxmemory_policy') ?? 'noeviction';
    if (policy === 'noeviction') return ok('maxmemory-policy is noeviction.');
    return warning(
      `maxmemory-policy is ${policy}: with memory short, leases are evicted, and their work is rolled back.`,
      'Set it to noeviction, or give the locks a server of their own.',
    );
  },
};

const persistence: Check<Info> = {
  name: 'persistence',
  async look(info) {
    if (info.get('aof_enabled') === '1') return ok('An append-only file is kept.');
    return ok('No append-only file: a restart may forget leases. That costs their work, and no update.');
  },
};

const replicas: Check<Info> = {
  name: 'replicas',
  async look(info) {
    const count = Number(info.get('connected_slaves') ?? 0);
    if (count === 0) return ok('None is connected.');
    return ok(`${count} connected: a failover may forget the last leases. That costs their work, and no update.`);
  },
};

export const redisChecks = [version, role, eviction, persistence, replicas];
