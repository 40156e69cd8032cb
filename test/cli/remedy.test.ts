import { expect, test } from 'vitest';
import { remedyFor } from '../../src/cli/servers/remedy.js';

const ofPostgres = (code: string, message: string) => Object.assign(new Error(message), { code });

test.each([
  [
    'a host that pg_hba.conf refuses',
    ofPostgres('28000', 'no pg_hba.conf entry for host "10.0.0.9"'),
    /pg_hba\.conf .*TLS/,
  ],
  ['a role that does not exist', ofPostgres('28000', 'role "nobody" does not exist'), /the user and the password/],
  ['a replica', new Error("READONLY You can't write against a read only replica."), /the URL of the primary/],
  ['a right that is missing', new Error('NOPERM this user'), /in node_modules\/.*\/docs\/rights\.md\.$/],
  ['a server that expects TLS', new Error('write ECONNRESET'), /rediss:\/\/.*sslmode=require/],
  ['a server without TLS', new Error('The server does not support SSL connections'), /Take sslmode out/],
  [
    'no answer, as from a Redis without TLS',
    new Error('connect ETIMEDOUT'),
    /rediss:\/\/ is for a server that expects TLS/,
  ],
  [
    'a certificate that nobody known has signed',
    ofPostgres('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'),
    /NODE_EXTRA_CA_CERTS/,
  ],
])('%s has advice that fits', (_, error, advice) => {
  expect(remedyFor(error)).toMatch(advice);
});

test('what is not known has none', () => {
  expect(remedyFor(ofPostgres('CERT_HAS_EXPIRED', 'certificate has expired'))).toBeUndefined();
  expect(remedyFor(new Error('ERR something else'))).toBeUndefined();
});
