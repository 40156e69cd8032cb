import { expect, inject, test } from 'vitest';
import { namesOf } from '../../../src/redis/names.js';
import { untilHolds } from '../../support/eventually.js';
import type { FaultProxy } from '../../support/fault-proxy.js';
import { Lines } from '../../support/faults/lines.js';
import { connectTo } from '../../support/redis-site.js';
import type { RedisGroup } from '../../support/servers/index.js';
import { Shop, type ShopOptions } from '../../support/shop.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { TOPOLOGIES } from '../../support/topologies.js';
import { PREFIX } from '../../waiting/actors.js';

/**
 * How many connections for wake-ups a process has that waits for one key, and a wait time that is over before the next PING
 * could be without an answer for a second.
 */
const SITES = {
  single: { connections: 1, waitTime: 1_500 },
  sentinel: { connections: 1, waitTime: 1_500 },
  cluster: { connections: 1, waitTime: 700 },
  'quorum of 3': { connections: 3, waitTime: 1_500 },
} as const;

/** Longer than any test: neither the end of a lease nor that of a wait is what goes on. */
const FOR_EVER = 600_000;

for (const name of Object.keys(SITES) as (keyof typeof SITES)[]) {
  const { start, unavailable } = TOPOLOGIES[name];
  const { connections, waitTime } = SITES[name];
  describeWithGroup<RedisGroup>(`a connection for wake-ups that goes silent (${name})`, start, suite, unavailable());

  function suite(group: () => RedisGroup): void {
    const shop = new Shop();

    function client(site: ReturnType<Lines['site']>['redis']) {
      if (site === 'memory') throw new Error('there is no Redis');
      const { redis, close } = connectTo(site);
      shop.closeLater(close);
      return shop.client({ redis: redis as NonNullable<ShopOptions['redis']> });
    }

    test('is replaced while callers come and go, and hand-overs are by message again', async () => {
      const lines = await Lines.open({ databaseUrl: inject('postgres').app, group: group() });
      shop.closeLater(() => lines.close());
      const [holder, contender] = [client(group().site), client(lines.site('').redis)];
      const { key } = await shop.product(1);
      const { wake } = namesOf(PREFIX, key);
      await contender.prisma.$withLock(key, () => {});
      const held = await holder.prisma.$lock(key, { leaseTime: FOR_EVER });

      // The first answer of each connection for wake-ups, and all after it, are held back. Those for commands are well.
      const silent = new Set<FaultProxy>();
      for (const node of group().nodes) {
        const line = lines.toNode(node);
        line.onData('toClient', (data) => {
          if (silent.has(line) || !data.includes(wake)) return 'forward';
          silent.add(line);
          return 'hold';
        });
      }
      const told = () => contender.events.flatMap((event) => (event.type === 'subscriber-down' ? [event.error] : []));
      for (let caller = 0; caller < 5 && told().length < connections; caller++) {
        const waited = contender.prisma.$withLock(key, () => {}, { waitTime });
        await expect(waited).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      }
      const wentSilent = expect.objectContaining({ message: expect.stringContaining('went silent') });
      expect(told()).toEqual(Array.from({ length: connections }, () => wentSilent));
      expect(silent.size).toBe(connections);

      const waiting = contender.prisma.$withLock(key, () => 'in', { waitTime: FOR_EVER });
      await untilHolds(async () => expect((await holder.prisma.$locks.inspect(key)).waiting).toBe(1));
      const messages = [...silent].map((line) => passed(line, wake));
      await held.release();
      await Promise.all(messages);
      expect(await waiting).toBe('in');
    });
  }
}

/** Resolves when a message of the channel goes over the line. */
function passed(line: FaultProxy, channel: string): Promise<void> {
  return new Promise((resolve) => {
    const remove = line.onData('toClient', (data) => {
      if (data.includes('message\r\n') && data.includes(channel)) {
        remove();
        resolve();
      }
      return 'forward';
    });
  });
}
