import { checkNames, ensure } from '../../base/checks.js';

/** What `createBoard` takes. */
export interface BoardOptions {
  /** The path that the board is served at, such as `/admin/locks`, without a slash at its end. Default: none, the root. */
  readonly basePath?: string | undefined;
  /**
   * Whether the page may take a key from its holder, as `$locks.forceRelease` does. `true` needs `hosts` or `origin`.
   * Default: `false`.
   */
  readonly allowForceRelease?: boolean | undefined;
  /** Time between two looks at the servers while somebody has the page open; ms, 100 to 60 000. Default: 500. */
  readonly refreshInterval?: number | undefined;
  /** The heading of the page. Default: `Locks`. */
  readonly title?: string | undefined;
  /**
   * The origin that browsers see, such as `https://ops.example.com`, where a proxy changes the `Host` header. A force release
   * from another origin is refused. Default: whatever host the request came to.
   */
  readonly origin?: string | undefined;
  /**
   * The host names that requests may come to, without ports, IPv6 as `[::1]`; others are refused. It stops a foreign page
   * that has its own name resolve to this server (DNS rebinding). Default: any.
   */
  readonly hosts?: readonly string[] | undefined;
}

export type ResolvedBoardOptions = ReturnType<typeof resolveBoardOptions>;

const KNOWN = ['basePath', 'allowForceRelease', 'refreshInterval', 'title', 'origin', 'hosts'];
const SHORTEST = 100;
const LONGEST = 60_000;

/** @throws InvalidOptionError */
export function resolveBoardOptions(given: BoardOptions) {
  checkNames('options', given, KNOWN);
  const { basePath = '', allowForceRelease = false, refreshInterval = 500, title = 'Locks', origin, hosts } = given;
  const isPath = typeof basePath === 'string' && /^(\/(?!\.\.?(\/|$))[\w.~-]+)*$/.test(basePath);
  ensure(isPath, 'basePath', 'must be a path such as "/admin/locks", without a slash at its end.');
  ensure(typeof allowForceRelease === 'boolean', 'allowForceRelease', 'must be true or false.');
  const isInterval = Number.isFinite(refreshInterval) && refreshInterval >= SHORTEST && refreshInterval <= LONGEST;
  ensure(isInterval, 'refreshInterval', `must be ${SHORTEST} to ${LONGEST} milliseconds.`);
  ensure(typeof title === 'string' && title.trim() !== '', 'title', 'must be a text.');
  const mustBeOrigin = 'must be an origin such as "https://ops.example.com", without a path.';
  ensure(origin === undefined || isOrigin(origin), 'origin', mustBeOrigin);
  const areHosts = hosts === undefined || (Array.isArray(hosts) && hosts.every(isHost));
  ensure(areHosts, 'hosts', 'must be a list of host names, without ports; IPv6 as "[::1]".');
  ensure(
    !allowForceRelease || hosts !== undefined || origin !== undefined,
    'allowForceRelease',
    'needs `hosts` (the names that the board is served under) or `origin` (the origin that browsers see): without them a ' +
      'foreign page could have its own name resolve to this server and take keys.',
  );
  return {
    basePath,
    allowForceRelease,
    refreshInterval,
    title,
    origin,
    hosts: hosts?.map((host) => host.toLowerCase()),
  };
}

/** A port, as in `localhost:3000`, would never be equal to a name. Neither would `::1`, which has no brackets. */
function isHost(text: unknown): boolean {
  return typeof text === 'string' && !/:\d+$/.test(text);
}

function isOrigin(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && new URL(text).origin === text;
}
