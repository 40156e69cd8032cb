import type { ChildProcess } from 'node:child_process';
import { checkNames } from '../../../base/check-names.js';
import { InvalidOptionError } from '../../../base/errors.js';
import { checkKey } from '../../../options/validate-call.js';
import { namesOf } from '../../../redis/names.js';
import { guard } from '../servers/guard.js';
import { Drops } from './drops.js';
import { FaultMissed } from './errors.js';
import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import { deleteNames, prefixesOfLeases } from './names-in-redis.js';

/** What can be made to happen between a client and its servers. */
export interface FaultLines {
  /** For the client whose lines are to fail. The others take those of the servers. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /**
   * Nothing passes any more, in neither direction, and all connections stay: what the servers, and everybody else, see of
   * a process that stands still. Others get the key at about the end of the lease. With a child process, that process
   * itself stands still (SIGSTOP).
   */
  freezeHolder(child?: ChildProcess): void;
  /** Lets it go on. What was held up arrives now, in its order. A child that was frozen is given here, too. */
  thawHolder(child?: ChildProcess): void;
  /**
   * Redis has no lease of this key any more, as after an eviction or a failover that lost it. The holder finds out at its
   * next renewal, a third of `leaseTime` later at most.
   *
   * @throws FaultMissed if nobody has the key, or if the client has another `keyPrefix`.
   */
  loseLease(key: string): Promise<void>;
  /**
   * Redis has nothing of these locks any more, as after FLUSHALL. What others have there stays.
   *
   * @throws FaultMissed if there are leases, but none with this `keyPrefix`.
   */
  flushRedis(): Promise<void>;
  /**
   * Breaks connections to Postgres. `commit`: the next COMMIT is done, and its answer is lost. `before commit`: the next COMMIT
   * does not arrive. `now`: all that are open. Resolves when it has happened. Not through TLS, except `now`.
   *
   * @throws FaultMissed at `close()` if no COMMIT has come; after 4 s if no client uses the lines; for `now` if none is open.
   */
  dropConnection(how: { readonly at: 'commit' | 'before commit' | 'now' }): Promise<void>;
  /** Ends the lines. What is frozen goes on, and a `dropConnection` that has not happened rejects. */
  close(): Promise<void>;
}

/**
 * Lines to real servers that fail when a test says so.
 *
 * @param servers as `testServers()` gives them.
 * @param keyPrefix the option of the client's `fencedLock`, for `loseLease` and `flushRedis`. Default: `fenced-lock:`.
 * @throws InvalidOptionError for what is no URL, and for an option that is not known.
 */
export async function faultLines(
  servers: { readonly databaseUrl: string; readonly redisUrl: string },
  options: { readonly keyPrefix?: string | undefined } = {},
): Promise<FaultLines> {
  for (const name of ['databaseUrl', 'redisUrl'] as const) {
    if (URL.canParse(servers?.[name])) continue;
    throw new InvalidOptionError(name, 'must be a URL: give what testServers() returned.');
  }
  checkNames('options', options, ['keyPrefix']);
  const { keyPrefix = 'fenced-lock:' } = options;
  const [postgres, redis] = await Promise.all([lineTo(servers.databaseUrl, 5432), lineTo(servers.redisUrl, 6379)]);
  const drops = new Drops(postgres);
  const frozen = new Map<ChildProcess, () => void>();
  const thaw = (child: ChildProcess) => {
    frozen.get(child)?.();
    child.kill('SIGCONT');
  };
  return {
    databaseUrl: postgres.url(servers.databaseUrl),
    redisUrl: redis.url(servers.redisUrl),
    freezeHolder(child) {
      if (child === undefined) for (const line of [postgres, redis]) line.silence();
      else {
        // It could not end by itself, if this process did.
        if (!frozen.has(child) && child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
          const { release } = guard({ pid: child.pid });
          const over = () => {
            child.off('exit', over);
            frozen.delete(child);
            release();
          };
          frozen.set(child, over);
          // Its pid may be another process's afterwards.
          child.once('exit', over);
        }
        child.kill('SIGSTOP');
      }
    },
    thawHolder(child) {
      if (child === undefined) for (const line of [postgres, redis]) line.resume();
      else thaw(child);
    },
    async loseLease(key) {
      const deleted = await deleteNames(servers.redisUrl, { name: namesOf(keyPrefix, checkKey(key)).lease });
      if (deleted > 0) return;
      const nobody = `Nobody has the lease of ${JSON.stringify(key)}: call loseLease while the function of its holder runs.`;
      throw new FaultMissed(`${nobody} ${await hintOfPrefix(servers.redisUrl, keyPrefix)}`);
    },
    async flushRedis() {
      if ((await deleteNames(servers.redisUrl, { prefix: keyPrefix })) > 0) return;
      const others = await prefixesOfLeases(servers.redisUrl);
      if (others.length === 0) return;
      throw new FaultMissed(`There was nothing to flush. ${await hintOfPrefix(servers.redisUrl, keyPrefix)}`);
    },
    dropConnection({ at }) {
      if (at === 'commit' || at === 'before commit') return drops.next(at);
      if (at !== 'now')
        return Promise.reject(new InvalidOptionError('at', "must be 'commit', 'before commit' or 'now'."));
      if (postgres.connections === 0) return Promise.reject(new FaultMissed(NONE_OPEN));
      postgres.reset();
      return Promise.resolve();
    },
    async close() {
      for (const child of [...frozen.keys()]) thaw(child);
      drops.close();
      await Promise.all([postgres.close(), redis.close()]);
    },
  };
}

const NONE_OPEN =
  'No connection to Postgres is open through these lines: make the client with `lines.databaseUrl`, and let it connect first.';

/** Which prefix the leases have that are there. */
async function hintOfPrefix(redisUrl: string, keyPrefix: string): Promise<string> {
  const others = (await prefixesOfLeases(redisUrl)).filter((prefix) => prefix !== keyPrefix);
  const found =
    others.length === 0 ? '' : ` Here are leases with ${others.map((name) => JSON.stringify(name)).join(', ')}.`;
  return `These lines look for the \`keyPrefix\` ${JSON.stringify(keyPrefix)}.${found} If the client has another one, give it: faultLines(servers, { keyPrefix }).`;
}

function lineTo(url: string, port: number): Promise<FaultProxy> {
  const { hostname, port: given } = new URL(url);
  // A URL has an IPv6 address in brackets, a socket has not.
  const host = hostname.replace(/^\[|\]$/g, '');
  return startFaultProxy({ host, port: Number(given || port) });
}
