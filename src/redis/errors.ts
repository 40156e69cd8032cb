import { Denied } from '../lease/store.js';

/** What to do about what a server answers, by what its answer says; before Redis 7 it stands within one of the script's. */
const ADVICE: ReadonlyArray<readonly [said: RegExp, advice: string]> = [
  [/\bREADONLY\b/, 'this server is a read-only replica: connect to the primary, or through Sentinel'],
  [/\bOOM command\b/, "the server's memory is full: raise maxmemory, or give the locks a server of their own"],
  [/\bNOREPLICAS\b/, 'min-replicas-to-write is not met: see to the replicas'],
  [/\bWRONGTYPE\b/, 'a name of this lock has a value of another type, which `$locks.forceRelease` deletes'],
  [/^(MOVED|CROSSSLOT)\b/, 'this server is a node of a Cluster: give a client for one, new Cluster([…])'],
  [/^CLUSTERDOWN\b/, 'the Cluster does not serve all keys: see to its nodes'],
  [/cluster support disabled/, 'this server is no node of a Cluster: give a client for one server, new Redis(…)'],
  [
    /^ERR unknown command/i,
    'scripts are needed here: EVALSHA and EVAL under their own names; or this is a Sentinel: new Redis({ name, sentinels })',
  ],
  [
    /\b(WRONGPASS|NOAUTH)\b/,
    'see to the user and the password of the client; those of a Cluster are in its redisOptions',
  ],
  [
    /^NOPERM\b|ACL failure in script|executing the script can't/,
    'the user needs more rights: see "Rights" in the README',
  ],
];

/** What no waiting heals: the user, the password or a right is wrong. */
const DENIAL = /\b(WRONGPASS|NOAUTH|NOPERM)\b|ACL failure in script|executing the script can't/;

function advised(said: string): string {
  const message = said
    // A command that the server does not know is repeated by it, arguments and all.
    .replace(/,? with args beginning with:.*$/s, '')
    .replace(/\bUser \S+ has no permissions/g, 'the user has no permissions');
  const advice = ADVICE.find(([said]) => said.test(message))?.[1];
  // It may pass here twice.
  return advice === undefined || message.endsWith(`(${advice})`) ? message : `${message} (${advice})`;
}

/**
 * A Redis error as it may be shown: ioredis hangs the command on it, with all arguments, and that of a refused login
 * holds the password.
 */
export function presentable(error: unknown): Error {
  const { name, message, code, lastNodeError } = (error ?? {}) as Record<string, unknown>;
  const said = typeof message === 'string' ? message || String(code ?? name) : String(error);
  // The client of a Cluster says only that all nodes failed, and keeps what the last of them said beside it.
  const shown = advised(lastNodeError instanceof Error ? `${said} ${lastNodeError.message}` : said);
  const plain = DENIAL.test(shown) ? new Denied(shown) : new Error(shown);
  if (typeof name === 'string') plain.name = name;
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain;
}

/** Whether the server itself said it; otherwise nobody did. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** A Cluster's way of saying: not here, or not now. */
export function isRedirection(error: unknown): boolean {
  return error instanceof Error && /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /.test(error.message);
}

/** Whether nobody is there to connect to: the machine itself says so, at each address of its name. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isRefusal);
  return (error as { readonly code?: unknown } | null | undefined)?.code === 'ECONNREFUSED';
}
