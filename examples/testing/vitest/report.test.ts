import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Client, createClient } from '../src/client';
import { writeReport } from '../src/report';

describe('the nightly report, without a server', () => {
  test('is written once, and again on the next day', async () => {
    vi.useFakeTimers({ now: new Date('2026-11-01T02:00:00Z') });
    const report = { create: vi.fn(async () => {}) };
    const locks = fakeLocks<Client>({ report });
    expect([await writeReport(locks.prisma), await writeReport(locks.prisma)]).toEqual([true, false]);
    vi.setSystemTime(new Date('2026-11-02T02:00:00Z'));
    expect(await writeReport(locks.prisma)).toBe(true);
    expect(report.create).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });

  test('is written by the next call if its transaction was rolled back', async () => {
    const locks = fakeLocks<Client>({ report: { create: async () => {} } });
    locks.next('report:nightly').isRolledBack();
    await expect(writeReport(locks.prisma)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(await writeReport(locks.prisma)).toBe(true);
  });
});

describe('the nightly report, on real servers', () => {
  let servers: TestServers;
  let one: ReturnType<typeof createClient>;
  let other: ReturnType<typeof createClient>;
  beforeAll(async () => {
    servers = await testServers();
    one = createClient(servers);
    other = createClient(servers);
  });
  afterEach(() => servers.empty());
  afterAll(async () => {
    await Promise.all([one.close(), other.close()]);
    await servers.stop();
  });

  test('is written once by two processes', async () => {
    const runs = await Promise.all([writeReport(one.prisma), writeReport(other.prisma)]);
    expect(runs.toSorted()).toEqual([false, true]);
    expect(await one.prisma.report.count()).toBe(1);
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
    await vi.waitFor(async () => expect(await writeReport(one.prisma)).toBe(true), { timeout: 20_000, interval: 200 });
    lines.thawHolder();
    expect(await night).toBe('failed');
    expect(await one.prisma.report.count()).toBe(1);
    await frozen.close();
    await lines.close();
  }, 30_000);
});
