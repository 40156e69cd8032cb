import type { ChildProcess } from 'node:child_process';
import { checkNames } from '../../../base/checks.js';
import { InvalidOptionError } from '../../../base/errors.js';
import { checkKey } from '../../../options/arguments.js';
import { namesOf } from '../../../redis/names.js';
import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import { deleteNames } from './names-in-redis.js';

/** The fault that a test asked for did not happen. The message says why, and what to do. */
export class FaultMissed extends Error {
  override readonly name = 'FaultMissed';
}

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
   * @throws FaultMissed if there is nothing, or only with another `keyPrefix`.
   */
  flushRedis(): Promise<void>;
  /**
   * Breaks connections to Postgres. `commit`: the next COMMIT is done, and its answer is lost. `before commit`: the next COMMIT
   * does not arrive. `now`: all that are open. Resolves when it has happened. Not through TLS, except `now`.
   *
   * @throws FaultMissed at `close()` if no COMMIT has come; for `now` if none is open.
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
  /** The COMMITs that have not come yet. */
  const awaited = new Map<AbortController, string>();
  const frozen = new Set<ChildProcess>();
  const missed = (what: string) =>
    new FaultMissed(
      `${what} These lines look for the \`keyPrefix\` ${JSON.stringify(keyPrefix)}. If the client has another one, give it: ` +
        'faultLines(servers, { keyPrefix }).',
    );
  return {
    databaseUrl: postgres.url(servers.databaseUrl),
    redisUrl: redis.url(servers.redisUrl),
    freezeHolder(child) {
      if (child === undefined) for (const line of [postgres, redis]) line.silence();
      else {
        frozen.add(child);
        child.kill('SIGSTOP');
      }
    },
    thawHolder(child) {
      if (child === undefined) for (const line of [postgres, redis]) line.resume();
      else child.kill('SIGCONT');
    },
    async loseLease(key) {
      const deleted = await deleteNames(servers.redisUrl, { name: namesOf(keyPrefix, checkKey(key)).lease });
      if (deleted > 0) return;
      throw missed(
        `Nobody has the lease of ${JSON.stringify(key)}: call loseLease while the function of its holder runs.`,
      );
    },
    async flushRedis() {
      if ((await deleteNames(servers.redisUrl, { prefix: keyPrefix })) === 0)
        throw missed('There was nothing to flush.');
    },
    dropConnection({ at }) {
      if (at === 'now') {
        const isOpen = postgres.connections > 0;
        postgres.reset();
        return isOpen
          ? Promise.resolve()
          : Promise.reject(new FaultMissed(`No connection to Postgres is open. ${USE_THEM}`));
      }
      const off = new AbortController();
      awaited.set(off, at);
      const cut = at === 'commit' ? postgres.cutAfterCommit(off.signal) : postgres.cutBeforeCommit(off.signal);
      const over = () => awaited.delete(off);
      // A test that has failed before it awaits this reports its own error alone.
      cut.then(over, over);
      return cut;
    },
    async close() {
      for (const child of frozen) child.kill('SIGCONT');
      for (const [off, at] of awaited) {
        off.abort(
          new FaultMissed(`dropConnection({ at: '${at}' }) has seen no COMMIT: its call was rolled back. ${USE_THEM}`),
        );
      }
      await Promise.all([postgres.close(), redis.close()]);
    },
  };
}

const USE_THEM = 'Or another client was used: make the client with `lines.databaseUrl`, on a server without TLS.';

function lineTo(url: string, port: number): Promise<FaultProxy> {
  const { hostname, port: given } = new URL(url);
  // A URL has an IPv6 address in brackets, a socket has not.
  const host = hostname.replace(/^\[|\]$/g, '');
  return startFaultProxy({ host, port: Number(given || port) });
}
