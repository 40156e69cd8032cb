import type { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CommitWatcher } from '../../src/addons/testing/faults/commit-watcher.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { count, withClient } from './sql.js';

let server: PostgresServer;
let proxy: FaultProxy;
let direct: string;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

beforeEach(async () => {
  direct = await server.createDatabase();
  await withClient(direct, (client) => client.query('CREATE TABLE stock (id int PRIMARY KEY)'));
  proxy = await startFaultProxy(server);
  return () => proxy.close();
});

const through = <T>(work: (client: Client) => Promise<T>) => withClient(proxy.url(direct), work);

async function insertAndCommit(client: Client, commit: () => Promise<unknown>): Promise<void> {
  await client.query('BEGIN');
  await client.query('INSERT INTO stock VALUES ($1)', [1]);
  await commit();
}

// Not in pg's types: without it, a query without values is a simple one.
const extended = { text: 'COMMIT', queryMode: 'extended' };

/** The ways in which a client can say it. */
const commits: Record<string, (client: Client) => Promise<unknown>> = {
  'a simple query': (client) => client.query('COMMIT'),
  'a simple query, spelled otherwise': (client) => client.query(' commit  work; '),
  'an extended query': (client) => client.query(extended),
  'a named prepared statement': (client) => client.query({ name: 'done', text: 'COMMIT', values: [] }),
};

describe.each(Object.entries(commits))('COMMIT as %s', (_, commit) => {
  test('cut before: the client sees an error, and the row is not there', async () => {
    const cut = proxy.cutBeforeCommit();
    await through((client) =>
      expect(insertAndCommit(client, () => commit(client))).rejects.toThrow(/terminated|ECONNRESET/),
    );
    await cut;
    expect(await count(direct, 'stock')).toBe(0);
  });

  test('cut after: the client sees an error, and the row is there', async () => {
    const cut = proxy.cutAfterCommit();
    await through((client) =>
      expect(insertAndCommit(client, () => commit(client))).rejects.toThrow(/terminated|ECONNRESET/),
    );
    await cut;
    expect(await count(direct, 'stock')).toBe(1);
  });

  test('held: the row is there while the client still waits; resumed, it gets its answer', async () => {
    const held = proxy.holdCommitReply();
    await through(async (client) => {
      const committed = insertAndCommit(client, () => commit(client)).then(() => 'committed');
      await held;
      expect(await count(direct, 'stock')).toBe(1);
      expect(await Promise.race([committed, new Promise((resolve) => setTimeout(resolve, 100, 'waiting'))])).toBe(
        'waiting',
      );
      proxy.resume();
      expect(await committed).toBe('committed');
    });
  });
});

test('a trap fires once: the next transaction commits', async () => {
  void proxy.cutBeforeCommit();
  await through((client) => insertAndCommit(client, () => client.query('COMMIT'))).catch(() => {});
  await through((client) => insertAndCommit(client, () => client.query('COMMIT')));
  expect(await count(direct, 'stock')).toBe(1);
});

test('the connection dies on both sides: Postgres ends the backend and its locks', async () => {
  void proxy.cutBeforeCommit();
  await through((client) => insertAndCommit(client, () => client.query('COMMIT'))).catch(() => {});
  await withClient(direct, (client) =>
    client.query("SET lock_timeout = '5s'; LOCK TABLE stock IN ACCESS EXCLUSIVE MODE"),
  );
});

test('COMMIT is found however the network cuts the bytes, and behind a request for encryption', () => {
  const ssl = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  const startup = Buffer.concat([Buffer.from([0, 0, 0, 12, 0, 3, 0, 0]), Buffer.from('a\0b\0')]);
  const commit = Buffer.concat([Buffer.from('Q'), Buffer.from([0, 0, 0, 11]), Buffer.from('COMMIT\0')]);
  const reply = Buffer.concat([Buffer.from('C'), Buffer.from([0, 0, 0, 11]), Buffer.from('COMMIT\0')]);
  const watcher = new CommitWatcher();
  expect(watcher.hasCommit(ssl)).toBe(false);
  expect(watcher.hasCommitReply(Buffer.from('N'))).toBe(false);
  for (const byte of Buffer.concat([startup, commit]).subarray(0, -1))
    expect(watcher.hasCommit(Buffer.from([byte]))).toBe(false);
  expect(watcher.hasCommit(commit.subarray(-1))).toBe(true);
  for (const byte of reply.subarray(0, -1)) expect(watcher.hasCommitReply(Buffer.from([byte]))).toBe(false);
  expect(watcher.hasCommitReply(reply.subarray(-1))).toBe(true);
});
