import { expect, test } from 'vitest';
import { untilHolds } from '../../support/eventually.js';
import { askServer, startCluster } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, someKey } from '../../waiting/actors.js';
import { ClusterActor } from './cluster-actor.js';

const LEASE = 1_500;

describeWithGroup('the renewal of leases that several masters have', startCluster, (cluster) => {
  /** A key on another master than the first one. */
  async function keyBeside(first: string): Promise<string> {
    const owner = await cluster().ownerOf(leaseName(first));
    for (;;) {
      const key = someKey();
      if ((await cluster().ownerOf(leaseName(key))).port !== owner.port) return key;
    }
  }

  test('goes on where its master answers, while another master is silent', async () => {
    // Nobody takes over, so the silence lasts.
    for (const { url } of cluster().nodes) await askServer(url, 'CONFIG', 'SET', 'cluster-node-timeout', '60000');
    const holder = new ClusterActor(cluster(), { store: { commandTimeout: 10 * LEASE } });
    const key = someKey();
    const silent = await cluster().ownerOf(leaseName(key));
    const other = await keyBeside(key);
    // Its lease would be the first to end.
    const healthy = await holder.acquire(other, { leaseTime: LEASE });
    const stranded = await holder.acquire(key, { leaseTime: LEASE });
    silent.freeze();
    try {
      await untilHolds(() => expect(stranded.lease.loss).toMatchObject({ reason: 'expired' }));
      expect(healthy.lease.loss).toBeUndefined();
    } finally {
      silent.thaw();
    }
    stranded.end();
    healthy.end();
  });
});
