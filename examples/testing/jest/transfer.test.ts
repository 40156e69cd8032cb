import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { type Client, createClient } from '../src/client';
import { transfer } from '../src/transfer';

describe('a transfer, without a server', () => {
  /** Two accounts with 10 each, in memory. */
  function bank() {
    const balances = new Map([
      [1, 10],
      [2, 10],
    ]);
    const account = {
      findUniqueOrThrow: async ({ where }: { where: { id: number } }) => ({ balance: balances.get(where.id) }),
      update: async ({ where, data }: { where: { id: number }; data: { balance: number } }) => {
        balances.set(where.id, data.balance);
      },
    };
    return { balances, locks: fakeLocks<Client>({ account }) };
  }

  test('takes the keys of both accounts in one order, so that two opposite transfers do not hang', async () => {
    const { balances, locks } = bank();
    await Promise.all([transfer(locks.prisma, 1, 2, 3), transfer(locks.prisma, 2, 1, 5)]);
    expect([...balances.values()]).toEqual([12, 8]);
    expect(locks.calls.map(({ keys }) => keys)).toEqual([
      ['account:1', 'account:2'],
      ['account:1', 'account:2'],
    ]);
  });

  test('passes on that a newer holder has written', async () => {
    const { balances, locks } = bank();
    locks.next().isStale();
    await expect(transfer(locks.prisma, 1, 2, 3)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    expect([...balances.values()]).toEqual([10, 10]);
  });
});

describe('a transfer, on real servers', () => {
  let servers: TestServers;
  let bank: ReturnType<typeof createClient>;
  beforeAll(async () => {
    servers = await testServers();
    bank = createClient(servers);
  });
  afterEach(() => servers.empty());
  afterAll(async () => {
    await bank.close();
    await servers.stop();
  });

  const open = (id: number) => bank.prisma.account.create({ data: { id, balance: 100 } });
  const balances = async () =>
    (await bank.prisma.account.findMany({ orderBy: { id: 'asc' } })).map(({ balance }) => balance);

  test('twenty transfers there and back lose nothing', async () => {
    await Promise.all([open(1), open(2)]);
    const transfers = Array.from({ length: 20 }, (_, n) =>
      n % 2 === 0 ? transfer(bank.prisma, 1, 2, 3) : transfer(bank.prisma, 2, 1, 2),
    );
    await Promise.all(transfers);
    expect(await balances()).toEqual([90, 110]);
  });

  test('fault: COMMIT does not arrive, and nothing is moved', async () => {
    const lines = await faultLines(servers);
    const unlucky = createClient(lines);
    await Promise.all([open(1), open(2)]);
    const dropped = lines.dropConnection({ at: 'before commit' });
    await expect(transfer(unlucky.prisma, 1, 2, 3)).rejects.toThrow();
    await dropped;
    expect(await balances()).toEqual([100, 100]);
    await unlucky.close();
    await lines.close();
  });
});
