import { afterEach } from 'vitest';
import { askServer, type RedisGroup, type RedisServer } from '../support/servers/index.js';
import { holderOf } from '../waiting/actors.js';
import { QuorumActor, type QuorumOptions } from './quorum-actor.js';

/** Longer than a busy machine stands still. */
export const LEASE = 3_000;

/** What the tests of nodes that fail work with. After each test all of them are up again. */
export function quorumStage(group: () => RedisGroup) {
  afterEach(async () => {
    for (const node of group().nodes) {
      node.thaw();
      const isUp = await askServer(node.url, 'PING').then(
        () => true,
        () => false,
      );
      if (!isUp) await node.start();
    }
  });
  const nodes = (...indexes: number[]) => indexes.map((index) => group().nodes[index] as RedisServer);
  return {
    freeze: (index: number) => nodes(index)[0]?.freeze(),
    thaw: (index: number) => nodes(index)[0]?.thaw(),
    kill: (...indexes: number[]) => Promise.all(nodes(...indexes).map((node) => node.killHard())),
    async connected(options: QuorumOptions = {}): Promise<QuorumActor> {
      const actor = new QuorumActor(group(), options);
      await Promise.all(actor.clients.map((client) => client.ping()));
      return actor;
    },
    newcomer: () => new QuorumActor(group()),
  };
}

/** Who has the key on each node, or on some of them, as the node says. */
export function holders(
  { clients }: QuorumActor,
  key: string,
  nodes = clients.map((_, index) => index),
): Promise<(string | null)[]> {
  const asked = clients.filter((_, index) => nodes.includes(index));
  return Promise.all(asked.map((client) => holderOf(client, key)));
}
