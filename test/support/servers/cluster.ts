import { askServer } from '../../../src/addons/testing/servers/redis.js';
import { eventually } from '../eventually.js';
import { type FailoverGroup, type RedisServer, startAll, stopAll, untilWhole } from './redis-group.js';

export interface ClusterGroup extends FailoverGroup {
  /** Another master gets the slot of this name, with all that is in it. */
  reshard(name: string): Promise<void>;
  /**
   * Resolves when the replica has what the master of this name has now. A replica that has just come in gets what is
   * written only after it has answered once; a master that dies before that takes everything with it.
   */
  replicated(name: string): Promise<void>;
  /** What is written from now on is lost with the master of this name. The function that it gives lets the replica go on. */
  cutOffReplica(name: string): Promise<() => void>;
}

const MASTERS = 3;
const SLOTS = 16_384;
const WHOLE_WITHIN = 20_000;
const SETTINGS = [
  ['--cluster-enabled', 'yes'],
  ['--cluster-config-file', 'nodes.conf'],
  ['--cluster-node-timeout', '500'],
  // A replica stays with its master, so that every master has one again when a fault is over.
  ['--cluster-allow-replica-migration', 'no'],
  ['--repl-diskless-sync-delay', '0'],
].flat();

/** Three masters and a replica for each. */
export async function startCluster(): Promise<ClusterGroup> {
  const nodes = await startAll(MASTERS * 2, SETTINGS);
  await Promise.all(nodes.map(({ url }, index) => askServer(url, 'CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`)));
  const [first, ...others] = nodes;
  const known = async () => (await meet(first, others)) && (await allKnow(nodes));
  await eventually('the nodes know each other', known, { within: WHOLE_WITHIN, every: 50 });
  await Promise.all(nodes.map(assign(nodes)));
  return await untilWhole(groupOf(nodes));
}

/**
 * Introduces to a node those that it does not know. A handshake that lasts longer than the node timeout is forgotten, as on a
 * machine that stands still. Resolves to whether it knew all of them.
 */
async function meet(node: RedisServer, others: readonly RedisServer[]): Promise<boolean> {
  const view = await viewOf(node);
  const strangers = others.filter(({ port }) => !view.some((seen) => seen.port === port));
  for (const { host, port } of strangers) await askServer(node.url, 'CLUSTER', 'MEET', host, `${port}`);
  return strangers.length === 0;
}

async function allKnow(nodes: readonly RedisServer[]): Promise<boolean> {
  const views = await Promise.all(nodes.map(viewOf));
  return views.every((view) => view.length === nodes.length && view.every(({ flags }) => !flags.includes('handshake')));
}

/** A range of slots to each of the first ones, and one of the first to each of the others. */
function assign(nodes: readonly RedisServer[]) {
  return async ({ url }: RedisServer, index: number) => {
    if (index < MASTERS) {
      const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / MASTERS)) as [number, number];
      await askServer(url, 'CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to - 1}`);
    } else {
      const id = await askServer((nodes[index - MASTERS] as RedisServer).url, 'CLUSTER', 'MYID');
      await askServer(url, 'CLUSTER', 'REPLICATE', String(id));
    }
  };
}

/** One node, as another one sees it. */
interface Seen {
  readonly id: string;
  readonly port: number;
  readonly flags: readonly string[];
  readonly master: string;
  readonly epoch: string;
  readonly connected: boolean;
  readonly slots: readonly string[];
}

async function viewOf({ url }: RedisServer): Promise<Seen[]> {
  const lines = String(await askServer(url, 'CLUSTER', 'NODES'))
    .trim()
    .split('\n');
  return lines.map((line) => {
    const [id = '', address = '', flags = '', master = '', , , epoch = '', state, ...slots] = line.split(' ');
    const port = Number(/:(\d+)@/.exec(address)?.[1]);
    return { id, port, flags: flags.split(','), master, epoch, connected: state === 'connected', slots };
  });
}

function groupOf(nodes: readonly RedisServer[]): ClusterGroup {
  const elections = new Elections();
  const nodeOf = ({ port }: Seen) => nodes.find((node) => node.port === port) as RedisServer;
  const pairOf = async (name: string) => {
    const { slot, view } = await locate(nodes, name);
    const owner = ownerIn(view, slot);
    const [replica] = view.filter(({ master }) => master === owner.id).map(nodeOf);
    if (replica === undefined) throw new Error('this master has no replica');
    return { master: nodeOf(owner), replica };
  };
  return {
    about: `Redis ${nodes[0]?.version}, three masters with a replica each`,
    site: { kind: 'cluster', nodes: nodes.map(({ host, port }) => ({ host, port })) },
    nodes,
    async ownerOf(name) {
      const { slot, view } = await locate(nodes, name);
      return nodeOf(ownerIn(view, slot));
    },
    async failOver(name) {
      const { replica } = await pairOf(name);
      await askServer(replica.url, 'CLUSTER', 'FAILOVER');
      elections.ordered(replica.port);
    },
    async reshard(name) {
      const { slot } = await locate(nodes, name);
      // On a busy machine, a master may hear from none of the others for so long that they count as failing.
      const ends = async () => {
        const { from, view } = await ownerItself(nodes, slot);
        const to = view.find((each) => isMaster(each) && each.id !== from.id);
        return to && { from, to };
      };
      const { from, to } = await eventually('there is another master', ends, { within: WHOLE_WITHIN });
      await moveSlot(`${slot}`, { ...from, url: nodeOf(from).url }, { ...to, url: nodeOf(to).url });
    },
    async replicated(name) {
      const { master, replica } = await pairOf(name);
      const written = await offsetOf(master);
      const has = async () => (await offsetOf(replica)) >= written;
      await eventually('the replica has what was written', has, { within: WHOLE_WITHIN, every: 5 });
    },
    async cutOffReplica(name) {
      const { master, replica } = await pairOf(name);
      // Frozen it does not connect again.
      replica.freeze();
      await askServer(master.url, 'CLIENT', 'KILL', 'TYPE', 'replica');
      return () => replica.thaw();
    },
    isWhole: async () => {
      try {
        if (!(await isWhole(nodes))) return false;
        const view = await viewOf(nodes[0] as RedisServer);
        return elections.areOver(portsOf(view, isMaster), portsOf(view, isReplica));
      } catch {
        return false;
      }
    },
    stop: () => stopAll(nodes),
  };
}

async function isWhole(nodes: readonly RedisServer[]): Promise<boolean> {
  const infos = await Promise.all(nodes.map(({ url }) => askServer(url, 'CLUSTER', 'INFO')));
  if (!infos.every((info) => String(info).includes('cluster_state:ok'))) return false;
  // A replica that has not heard of the newest epoch can win an election with an older one than its dead master had. The
  // others then refuse its slots, and for ever nobody has them.
  const epochs = infos.map((info) => /cluster_current_epoch:(\d+)/.exec(String(info))?.[1]);
  if (new Set(epochs).size > 1) return false;
  const views = await Promise.all(nodes.map(viewOf));
  const healthy = views.every(
    (view) =>
      view.length === nodes.length &&
      view.every(({ connected, flags }) => connected && !flags.some((flag) => flag.startsWith('fail'))) &&
      view.filter(isMaster).every(({ id, slots }) => slots.length > 0 && view.some(({ master }) => master === id)) &&
      // Two with one epoch: one of them is about to take a newer one.
      new Set(view.filter(isMaster).map(({ epoch }) => epoch)).size === MASTERS,
  );
  if (!healthy || new Set(views.map(mastersIn)).size > 1) return false;
  const roles = await Promise.all(nodes.map(({ url }) => askServer(url, 'INFO', 'replication')));
  const up = roles.filter((info) => /role:slave[\s\S]*master_link_status:up/.test(String(info)));
  return up.length === nodes.length - MASTERS;
}

/** How much of what is written a node has. */
async function offsetOf({ url }: RedisServer): Promise<number> {
  return Number(/master_repl_offset:(\d+)/.exec(String(await askServer(url, 'INFO', 'replication')))?.[1]);
}

function isMaster({ flags }: Seen): boolean {
  return flags.includes('master') && !flags.some((flag) => flag.startsWith('fail'));
}

function isReplica({ flags }: Seen): boolean {
  return flags.includes('slave');
}

function portsOf(view: readonly Seen[], plays: (node: Seen) => boolean): number[] {
  return view.filter(plays).map(({ port }) => port);
}

function mastersIn(view: readonly Seen[]): string {
  const masters = view.filter(isMaster).map(({ id, epoch, slots }) => `${id} ${epoch} ${slots.join(' ')}`);
  return masters.sort().join('\n');
}

/** As the first node sees it that answers. */
async function locate(nodes: readonly RedisServer[], name: string): Promise<{ slot: number; view: Seen[] }> {
  return await Promise.any(
    nodes.map(async (node) => ({
      slot: Number(await askServer(node.url, 'CLUSTER', 'KEYSLOT', name)),
      view: await viewOf(node),
    })),
  );
}

/** Who says of itself that it has the slot, and what it sees: the others may not have heard of the last move. */
async function ownerItself(nodes: readonly RedisServer[], slot: number): Promise<{ from: Seen; view: Seen[] }> {
  return await Promise.any(
    nodes.map(async (node) => {
      const view = await viewOf(node);
      const from = view.find((each) => each.flags.includes('myself') && isMaster(each) && owns(each, slot));
      if (from === undefined) throw new Error(`it does not have slot ${slot}`);
      return { from, view };
    }),
  );
}

function owns({ slots }: Seen, slot: number): boolean {
  return slots.some((range) => {
    const [from = Number.NaN, to = from] = range.split('-').map(Number);
    return from <= slot && slot <= to;
  });
}

function ownerIn(view: readonly Seen[], slot: number): Seen {
  // One that is down has its slots until another one has taken them.
  const owner = view.find((each) => isMaster(each) && owns(each, slot)) ?? view.find((each) => owns(each, slot));
  if (owner === undefined) throw new Error(`nobody has slot ${slot}`);
  return owner;
}

interface End {
  readonly id: string;
  readonly url: string;
  readonly port: number;
}

async function moveSlot(slot: string, from: End, to: End): Promise<void> {
  await askServer(to.url, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
  await askServer(from.url, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  for (;;) {
    const names = (await askServer(from.url, 'CLUSTER', 'GETKEYSINSLOT', slot, '100')) as string[];
    if (names.length === 0) break;
    await askServer(from.url, 'MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '1000', 'REPLACE', 'KEYS', ...names);
  }
  await askServer(to.url, 'CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  await askServer(from.url, 'CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
}

/** After five seconds a replica gives up a failover that an operator has ordered; milliseconds, with a margin. */
const GIVEN_UP_AFTER = 6_000;
/**
 * A node of Redis 7.0 that is elected, demoted by a failover, and then asked to take over once more counts the votes of its
 * first election again, if that was less than four seconds ago (twice the time for an election). It takes the slots with
 * its old epoch, the others refuse them, and from then on nobody has them. Milliseconds, with a margin.
 */
const VOTES_COUNT_FOR = 4_500;

/** What is still to come of the takeovers in a Cluster that looks whole. */
class Elections {
  /** When each node was first seen as a new master, by its port. */
  readonly #elected = new Map<number, number>();
  #masters: readonly number[] = [];
  #ordered: { readonly port: number; readonly givenUpAt: number } | undefined;

  /** An operator has told this replica to take over. For a moment nothing shows it. */
  ordered(port: number): void {
    this.#ordered = { port, givenUpAt: performance.now() + GIVEN_UP_AFTER };
  }

  /** Whether the next takeover begins with votes of its own. */
  areOver(masters: readonly number[], replicas: readonly number[]): boolean {
    const now = performance.now();
    if (this.#masters.length > 0) {
      for (const port of masters) if (!this.#masters.includes(port)) this.#elected.set(port, now);
    }
    this.#masters = masters;
    if (this.#ordered && now < this.#ordered.givenUpAt && !masters.includes(this.#ordered.port)) return false;
    this.#ordered = undefined;
    return replicas.every((port) => now - (this.#elected.get(port) ?? Number.NEGATIVE_INFINITY) > VOTES_COUNT_FOR);
  }
}
