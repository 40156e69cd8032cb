import type { ChildProcess } from 'node:child_process';
import { InvalidOptionError } from '../../base/errors.js';
import { namesOf } from '../../redis/keys.js';
import { guard } from '../servers/guard.js';
import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import { deleteNames } from './names.js';

/** What can be made to happen between a client and its servers. */
export interface FaultLines {
  /** For the client whose lines are to fail. The others take those of the servers. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /**
   * Nothing passes any more, in neither direction, and all connections stay: what the servers, and everybody else, see of
   * a process that stands still. With a child process, that process itself stands still (SIGSTOP).
   */
  freezeHolder(child?: ChildProcess): void;
  /** Lets it go on. What was held up arrives now, in its order. */
  thawHolder(child?: ChildProcess): void;
  /** Redis has no lease of this key any more, as after an eviction or a failover that lost it. */
  loseLease(key: string): Promise<void>;
  /** Redis has nothing of these locks any more, as after FLUSHALL. What others have there stays. */
  flushRedis(): Promise<void>;
  /**
   * Breaks connections to Postgres. `commit`: the next COMMIT is done, and its answer is lost. `before commit`: the next COMMIT
   * does not arrive. `now`: all that are open. Resolves when it has happened. Not through TLS, except `now`.
   */
  dropConnection(how: { readonly at: 'commit' | 'before commit' | 'now' }): Promise<void>;
  /** Ends the lines, and what is frozen goes on. */
  close(): Promise<void>;
}

/**
 * Lines to real servers that fail when a test says so.
 *
 * @param servers as `testServers()` gives them.
 * @param keyPrefix the option of the client's `fencedLock`. Default: `fenced-lock:`.
 */
export async function faultLines(
  servers: { readonly databaseUrl: string; readonly redisUrl: string },
  { keyPrefix = 'fenced-lock:' }: { readonly keyPrefix?: string } = {},
): Promise<FaultLines> {
  const [postgres, redis] = await Promise.all([lineTo(servers.databaseUrl, 5432), lineTo(servers.redisUrl, 6379)]);
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
      await deleteNames(servers.redisUrl, { name: namesOf(keyPrefix, key).lease });
    },
    async flushRedis() {
      await deleteNames(servers.redisUrl, { prefix: keyPrefix });
    },
    async dropConnection({ at }) {
      if (at === 'now') postgres.reset();
      else if (at === 'commit') await postgres.cutAfterCommit();
      else if (at === 'before commit') await postgres.cutBeforeCommit();
      else throw new InvalidOptionError('at', "must be 'commit', 'before commit' or 'now'.");
    },
    async close() {
      for (const child of [...frozen.keys()]) thaw(child);
      await Promise.all([postgres.close(), redis.close()]);
    },
  };
}

function lineTo(url: string, port: number): Promise<FaultProxy> {
  const { hostname, port: given } = new URL(url);
  // A URL has an IPv6 address in brackets, a socket has not.
  const host = hostname.replace(/^\[|\]$/g, '');
  return startFaultProxy({ host, port: Number(given || port) });
}
