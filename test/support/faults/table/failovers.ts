import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../eventually.js';
import { askServer, type RedisServer } from '../../servers/index.js';
import { type Fault, lasting, sudden } from '../fault.js';
import type { Stage } from '../servers-and-workers.js';

const HEALS_WITHIN = { within: 25_000, every: 50 };

/** To groups in which a node takes over from another one, at the node that has the keys of the workload. */
export const FAILOVERS: readonly Fault[] = [
  sudden('master killed, and back when another one has taken over', 'redis', async (stage) => {
    const old = await owner(stage);
    await old.killHard();
    await takenOver(stage, old);
    await old.start();
    await whole(stage);
  }),
  {
    name: 'master frozen, thawed when another one has taken over',
    place: 'redis',
    async strike(stage) {
      const old = await owner(stage);
      old.freeze();
      try {
        await takenOver(stage, old);
      } finally {
        old.thaw();
      }
      const answersAsMaster = String(await askServer(old.url, 'INFO', 'replication')).includes('role:master');
      await whole(stage);
      // In a Cluster it is told with the first message that it reads.
      return answersAsMaster || stage.group.site.kind === 'cluster';
    },
  },
  sudden('failover by an operator', 'redis', async (stage) => {
    const old = await owner(stage);
    await stage.failovers.failOver(stage.leaseName);
    await takenOver(stage, old);
    await whole(stage);
  }),
  {
    name: 'one worker cut off from the master',
    place: 'redis line',
    async strike(stage, { lines }, ms) {
      const line = lines.toNode(await owner(stage));
      line.silence();
      await sleep(ms);
      line.resume();
      return true;
    },
  },
  sudden("one worker's connections to the master reset", 'redis line', async (stage, { lines }) =>
    lines.toNode(await owner(stage)).reset(),
  ),
  lasting(
    'one worker slow to all nodes',
    'redis line',
    ({ group }, { lines }) => {
      for (const node of group.nodes) lines.toNode(node).latency(60);
    },
    ({ group }, { lines }) => {
      for (const node of group.nodes) lines.toNode(node).latency(0);
    },
  ),
];

/** To a Cluster alone. */
export const RESHARDING = sudden('the slot moved to another master', 'redis', async (stage) => {
  await stage.cluster.reshard(stage.leaseName);
  await whole(stage);
});

function owner({ failovers, leaseName }: Stage): Promise<RedisServer> {
  return eventually('somebody has the keys', () => failovers.ownerOf(leaseName).catch(() => undefined), HEALS_WITHIN);
}

async function takenOver(stage: Stage, old: RedisServer): Promise<void> {
  const isNew = async () => (await owner(stage)).port !== old.port;
  await eventually('another node has taken over', isNew, HEALS_WITHIN);
}

async function whole({ group }: Stage): Promise<void> {
  await eventually('the group is whole', group.isWhole, HEALS_WITHIN);
}
