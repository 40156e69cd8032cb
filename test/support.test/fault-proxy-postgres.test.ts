import { Client } from 'pg';
import { beforeEach, expect, inject, test } from 'vitest';
import { CommitWatcher } from '../../src/addons/testing/faults/commit-watcher.js';
import type { FaultProxy } from '../support/fault-proxy.js';
import { proxyTo } from '../support/proxied.js';

const { admin: direct } = inject('postgres');
const table = `proxied_${process.pid}`;
let proxy: FaultProxy;

beforeEach(async () => {
  await withClient(direct, (client) => client.query(`CREATE TABLE ${table} ()`));
  proxy = await proxyTo(direct);
  return async () => {
    await proxy.close();
    await withClient(direct, (client) => client.query(`DROP TABLE ${table}`));
  };
});

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  // The error of a broken connection also rejects the query that was running.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

const count = () => withClient(direct, async (client) => (await client.query(`SELECT FROM ${table}`)).rowCount);
const through = <T>(work: (client: Client) => Promise<T>) => withClient(proxy.url(direct), work);

async function insertAndCommit(client: Client, commit: () => Promise<unknown>): Promise<void> {
  await client.query('BEGIN');
  await client.query(`INSERT INTO ${table} DEFAULT VALUES`);
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

test.each(Object.entries(commits))(
  'COMMIT as %s is cut before it, or after it, or its answer is held',
  async (_, commit) => {
    const fails = () =>
      through((client) =>
        expect(insertAndCommit(client, () => commit(client))).rejects.toThrow(/terminated|ECONNRESET/),
      );
    const before = proxy.cutBeforeCommit();
    await fails();
    await before;
    expect(await count()).toBe(0);
    const after = proxy.cutAfterCommit();
    await fails();
    await after;
    expect(await count()).toBe(1);
    const held = proxy.holdCommitReply();
    await through(async (client) => {
      let isAnswered = false;
      const committed = insertAndCommit(client, () => commit(client)).then(() => {
        isAnswered = true;
      });
      await held;
      expect([await count(), isAnswered]).toEqual([2, false]);
      proxy.resume();
      await committed;
    });
  },
);

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
