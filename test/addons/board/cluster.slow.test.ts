import { expect, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { connectTo } from '../../support/redis-site.js';
import { startCluster } from '../../support/servers/index.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { Viewer } from './viewer.js';

describeWithShop('the board of a Cluster', () => {
  const shop = new Shop();

  describeWithGroup('of three masters', startCluster, (cluster) => {
    test('shows which master does not answer, although its connection stands', async () => {
      const { redis, close } = connectTo(cluster().site);
      shop.closeLater(close);
      const { prisma } = shop.client({ redis: redis as Exclude<typeof redis, unknown[]> });
      await prisma.$withLock('stock:1', () => {});
      const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
      const silent = await cluster().ownerOf('a');
      const address = `${silent.host}:${silent.port}`;
      const stateOf = () => viewer.status?.redis.find((server) => server.address === address);
      await viewer.until('all are well', () => stateOf()?.healthy);
      silent.freeze();
      const seen = await viewer.until('it is silent', () => stateOf()?.healthy === false && stateOf());
      silent.thaw();
      expect(seen).toMatchObject({ status: 'no answer', role: 'master' });
      viewer.leave();
    });
  });
});
