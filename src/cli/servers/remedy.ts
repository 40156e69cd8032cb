import { DOCS } from '../../base/errors.js';
import { codeOf, messageOf } from '../problem.js';

const REDIS_LOGIN = 'redis://<user>:<password>@<host>:<port> (without a user: redis://:<password>@<host>:<port>)';

/** What a URL looks like. Nothing of a given one is shown. */
export const FORMS = {
  redis: `redis://<host>:<port>, or with a login ${REDIS_LOGIN}`,
  database: 'postgresql://<user>:<password>@<host>:<port>/<database>',
} as const;

/** What a server said, or the code of an error, and what to do about it. */
const REMEDIES: ReadonlyArray<readonly [said: RegExp, remedy: string]> = [
  [/\bWRONGPASS\b/, `Correct the user and the password in the URL of Redis: ${REDIS_LOGIN}.`],
  [/\bNOAUTH\b/, `Put the user and the password into the URL of Redis: ${REDIS_LOGIN}.`],
  [
    /unknown command [`']info/i,
    'Allow INFO at the server, or let the client of the application use enableReadyCheck: false.',
  ],
  [/\bNOPERM\b/, `Give this user of Redis the rights in ${DOCS}rights.md.`],
  [/\bREADONLY\b/, 'Give the URL of the primary: this server is a replica.'],
  [
    /\bno pg_hba\.conf entry\b/,
    'Let this host, user and database in by pg_hba.conf of the server. If it only admits TLS, append sslmode=require to the ' +
      'query of the URL.',
  ],
  [/\b(28P01|28000)\b/, 'Correct the user and the password in the URL of the database.'],
  [/\b3D000\b/, 'Create the database, or correct its name in the URL.'],
  [/\bECONNREFUSED\b/, 'Nothing listens there: start the server, or correct host and port in the URL.'],
  [/\b(ENOTFOUND|EAI_AGAIN)\b/, 'The host has no address: correct the host in the URL.'],
  [
    /\b(self-signed certificate|unable to (get|verify))\b/i,
    'Let Node know who signed it: set NODE_EXTRA_CA_CERTS to the file of the CA.',
  ],
  [/\bdoes not support SSL\b/, 'Take sslmode out of the query of the URL, or turn on TLS at the server.'],
  [
    /\b(ECONNRESET|EPIPE)\b/,
    'The server closed the connection. If it expects TLS, begin the URL of Redis with rediss://, and append sslmode=require to ' +
      'the query of the URL of the database.',
  ],
  [
    /\bETIMEDOUT\b/,
    'Nothing answers there: correct host and port in the URL, or let this machine through the firewall. A URL with rediss:// is ' +
      'for a server that expects TLS.',
  ],
];

/** What to do about the error of a connection; `undefined` if it is not known. */
export function remedyFor(error: unknown): string | undefined {
  const said = `${codeOf(error)} ${messageOf(error)}`;
  return REMEDIES.find(([pattern]) => pattern.test(said))?.[1];
}

/** What Redis said, to be quoted in a sentence. Its own NOAUTH is about HELLO, a command that the client has chosen. */
export function saidByRedis(error: unknown): string {
  return messageOf(error).replace(/^NOAUTH\b.*/s, 'it needs a password (NOAUTH)');
}
