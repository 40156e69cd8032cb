import { DOCS } from '../base/errors.js';
import { Denied, ForeignValue } from '../waiting/store.js';

/** For a connection that comes to nothing without an error of its own, as where only one side speaks TLS. */
export const WHICH_URL = 'the URL begins with `rediss://` if the server speaks TLS, and with `redis://` if it does not';

/** The error of a command on a value of another type, and of our scripts on a value that is too long. */
const FOREIGN_VALUE = /\bWRONGTYPE\b/;

/** Advice for the errors of a server. Before Redis 7, the error of a command is embedded in the script's error. */
const ADVICE: ReadonlyArray<readonly [said: RegExp, advice: string]> = [
  [/\bREADONLY\b/, 'this server is a read-only replica: connect to the primary, or through Sentinel'],
  [/\bOOM command\b/, "the server's memory is full: raise maxmemory, or give the locks a server of their own"],
  [/\bNOREPLICAS\b/, 'min-replicas-to-write is not met: check the replicas'],
  [FOREIGN_VALUE, 'a name of this lock has a value that this package did not write: delete it with `forceRelease`'],
  [/^(MOVED|CROSSSLOT)\b/, 'this server is a node of a Cluster: use a Cluster client, new Cluster([…])'],
  [/^CLUSTERDOWN\b/, 'the Cluster does not serve all keys: check its nodes'],
  [/cluster support disabled/, 'this server is not a node of a Cluster: use a client for one server, new Redis(…)'],
  [/\bECONNREFUSED\b/, 'nothing listens there: start the server, or correct the address of the client'],
  [/\bETIMEDOUT\b/, `nothing answered there: check the address and the firewall; ${WHICH_URL}`],
  // ioredis takes what has no scheme of Redis for the path of a socket.
  [/\bENOENT\b/, 'there is no such socket: the URL must begin with redis:// or rediss://'],
  [/\bE(NOTFOUND|AI_AGAIN)\b/, 'the host has no address: correct the address of the client'],
  // By the command that was refused, whether the server does not know it or the user may not call it.
  [refused('info'), `allow INFO as ${DOCS}rights.md says, or give the client the option \`enableReadyCheck: false\``],
  [refused('s?subscribe|s?unsubscribe'), `allow wake-ups as ${DOCS}rights.md says, or set \`wake: 'poll'\``],
  [refused('scan'), `allow SCAN as ${DOCS}rights.md says, or look at one key with \`inspect(key)\``],
  [
    /unknown command [`']eval/i,
    'the server must allow EVALSHA and EVAL under these names; for a Sentinel, use new Redis({ name, sentinels })',
  ],
  [/unknown (redis )?command/i, `the server must allow the commands in ${DOCS}rights.md under their names`],
  [
    /\b(WRONGPASS|NOAUTH)\b/,
    'check the user and the password of the client; for a Cluster, they are in its redisOptions',
  ],
  [/^NOPERM\b|ACL failure in script|executing the script can't/, `the user needs more rights: see ${DOCS}rights.md`],
];

function refused(commands: string): RegExp {
  return new RegExp(`(unknown command [\`']|no permissions to run the ')(${commands})\\b`, 'i');
}

/** Errors that waiting does not cure: the user, the password or a right is wrong. */
const DENIAL = /\b(WRONGPASS|NOAUTH|NOPERM)\b|ACL failure in script|executing the script can't/;

/** What is no address and no plain path: ioredis takes a URL without the scheme of Redis for a path, with its password. */
const FOREIGN_URL =
  /\bconnect (E[A-Z]+) (?![\da-fA-F:.]+(?:%\w+)?(?::\d+)?[);]?(?: |$))(?!\/[\w.-]+(?:\/[\w.-]+)*(?: \(|$)).*$/s;

function advised(said: string): string {
  const message = said
    // The server repeats an unknown command with all its arguments: remove them.
    .replace(/,? with args beginning with:.*$/s, '')
    .replace(/\bUser \S+ has no permissions/g, 'the user has no permissions')
    .replace(FOREIGN_URL, 'connect $1');
  const advice = ADVICE.find(([said]) => said.test(message))?.[1];
  // An error may pass here twice.
  return advice === undefined || message.endsWith(`(${advice})`)
    ? message
    : `${message.replace(/\.$/, '')} (${advice})`;
}

/**
 * A Redis error without secrets: ioredis attaches the command with all its arguments, and the command of a refused
 * login contains the password.
 */
export function presentable(error: unknown): Error {
  const { name, message, code, lastNodeError } = (error ?? {}) as Record<string, unknown>;
  const said = typeof message === 'string' ? message || String(code ?? name) : String(error);
  // A Cluster client only says that all nodes failed, and has the last node's error in a property.
  const shown = advised(lastNodeError instanceof Error ? `${said} ${lastNodeError.message}` : said);
  const plain = ofItsKind(shown);
  if (typeof name === 'string') plain.name = name;
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain;
}

function ofItsKind(shown: string): Error {
  if (DENIAL.test(shown)) return new Denied(shown);
  return FOREIGN_VALUE.test(shown) ? new ForeignValue(shown) : new Error(shown);
}

/** Whether the error is a reply of the server. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether a Cluster redirects the command or cannot serve the slot now. */
export function isRedirection(error: unknown): boolean {
  return error instanceof Error && /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /.test(error.message);
}
