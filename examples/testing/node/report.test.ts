import assert from 'node:assert/strict';
import { after, afterEach, before, describe, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { type Client, createClient } from '../src/client';
import { writeReport } from '../src/report';

describe('the nightly report, without a server', () => {
  test('is written once, and again on the next day', async () => {
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: new Date('2026-11-01T02:00:00Z') });
    const report = { create: mock.fn(async () => {}) };
    const locks = fakeLocks<Client>({ report });
    assert.deepEqual([await writeReport(locks.prisma), await writeReport(locks.prisma)], [true, false]);
    mock.timers.setTime(Date.parse('2026-11-02T02:00:00Z'));
    assert.equal(await writeReport(locks.prisma), true);
    assert.equal(report.create.mock.callCount(), 2);
    mock.timers.reset();
  });

  test('is written by the next call if its transaction was rolled back', async () => {
    const locks = fakeLocks<Client>({ report: { create: async () => {} } });
    locks.next('report:nightly').isRolledBack();
    await assert.rejects(writeReport(locks.prisma), { code: 'TRANSACTION_ABORTED' });
    assert.equal(await writeReport(locks.prisma), true);
  });
});

describe('the nightly report, on real servers', () => {
  let servers: TestServers;
  let one: ReturnType<typeof createClient>;
  let other: ReturnType<typeof createClient>;
  before(async () => {
    servers = await testServers();
    one = createClient(servers);
    other = createClient(servers);
  });
  afterEach(() => servers.empty());
  after(async () => {
    await Promise.all([one.close(), other.close()]);
    await servers.stop();
  });

  test('is written once by two processes', async () => {
    const runs = await Promise.all([writeReport(one.prisma), writeReport(other.prisma)]);
    assert.deepEqual(runs.toSorted(), [false, true]);
    assert.equal(await one.prisma.report.count(), 1);
  });

  test('fault: a process freezes while it writes the report, and another one writes it', async () => {
    const lines = await faultLines(servers);
    const frozen = createClient(lines, { leaseTime: 1_000 });
    let night: Promise<unknown> | undefined;
    // It stops in the middle of the transaction, as if the whole process stood still.
    await new Promise<void>((isFrozen) => {
      const job = frozen.prisma.$oncePer('report:nightly', 86_400_000, async (tx) => {
        await tx.report.create({ data: { sales: 3 } });
        lines.freezeHolder();
        isFrozen();
      });
      night = job.catch(() => 'failed');
    });
    // Postgres ends the frozen transaction at about its lease time.
    while (!(await writeReport(one.prisma))) await sleep(200);
    lines.thawHolder();
    assert.equal(await night, 'failed');
    assert.equal(await one.prisma.report.count(), 1);
    await frozen.close();
    await lines.close();
  });
});
