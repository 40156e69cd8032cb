import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { askServer, type RedisProgram } from '../../../src/addons/testing/servers/redis.js';
import {
  type FailoverGroup,
  programForGroups,
  type RedisServer,
  startAll,
  stopAll,
  untilWhole,
} from './redis-group.js';

const NAME = 'shop';
const HOST = '127.0.0.1';
const SENTINELS = 3;
const QUORUM = '2';

/**
 * How long a node is silent until it counts as down, and how long one try of a failover may take; milliseconds. The
 * second one is longer, since a sentinel asks only once a second whether a replica was promoted.
 */
const DOWN_AFTER = '500';
const FAILOVER_TIMEOUT = '2000';
/** Sentinels say hello so often. After four times that, an old master that is back is made a replica. */
const HELLO_EVERY = '500';
/**
 * A sentinel whose timer is late by two seconds does nothing for the next thirty: its clock may have been set. In a test that is a
 * machine that stood still. https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/#tilt-mode
 */
const TILT_PERIOD = '1000';

/** One master, two replicas, three sentinels. */
export async function startSentinelGroup(): Promise<FailoverGroup> {
  const program = programForGroups();
  const [nodes, sentinels] = await Promise.all([
    // A replica asks for its data at once.
    startAll(3, ['--repl-diskless-sync-delay', '0'], program),
    startAll(SENTINELS, [], asSentinel(program)),
  ]);
  const [master, ...replicas] = nodes;
  await Promise.all(replicas.map(({ url }) => askServer(url, 'REPLICAOF', HOST, `${master.port}`)));
  await Promise.all(sentinels.map((sentinel) => watch(sentinel, master)));
  return await untilWhole(groupOf(nodes, sentinels));
}

function asSentinel(program: RedisProgram): RedisProgram {
  return {
    ...program,
    args: (port, dir) => {
      const file = join(dir, 'sentinel.conf');
      // It keeps there what it knows, and starts only if it may write.
      closeSync(openSync(file, 'a'));
      return [file, '--sentinel', '--port', `${port}`, '--bind', HOST];
    },
  };
}

async function watch({ url }: RedisServer, master: RedisServer): Promise<void> {
  await askServer(url, 'SENTINEL', 'MONITOR', NAME, HOST, `${master.port}`, QUORUM);
  const settings = ['down-after-milliseconds', DOWN_AFTER, 'failover-timeout', FAILOVER_TIMEOUT];
  await askServer(url, 'SENTINEL', 'SET', NAME, ...settings);
  await askServer(url, 'SENTINEL', 'DEBUG', 'info-period', '1000', 'publish-period', HELLO_EVERY);
  // Of Redis 7 and later.
  await askServer(url, 'SENTINEL', 'DEBUG', 'tilt-period', TILT_PERIOD).catch(() => {});
}

function groupOf(nodes: readonly RedisServer[], sentinels: readonly RedisServer[]): FailoverGroup {
  /** The node that most sentinels name. */
  const master = async () => {
    const named = await Promise.all(sentinels.map(masterBy));
    const port = named.find((each) => named.filter((other) => other === each).length * 2 > sentinels.length);
    const node = nodes.find((each) => each.port === port);
    if (node === undefined) throw new Error(`the sentinels do not agree on a master: ${named.join(', ')}`);
    return node;
  };
  const isWhole = async () => {
    try {
      const { port } = await master();
      const views = await Promise.all(sentinels.map(viewOf));
      const agree = views.every(
        (view) => view.port === port && view.flags === 'master' && view.replicas === 2 && view.sentinels === 2,
      );
      return agree && (await Promise.all(nodes.map((node) => playsItsPart(node, port)))).every((each) => each);
    } catch {
      return false;
    }
  };
  return {
    site: { kind: 'sentinel', name: NAME, sentinels: sentinels.map(({ host, port }) => ({ host, port })) },
    nodes,
    about: `Redis ${nodes[0]?.version}, one master, two replicas, three sentinels`,
    ownerOf: master,
    isWhole,
    async failOver() {
      await askServer((sentinels[0] as RedisServer).url, 'SENTINEL', 'FAILOVER', NAME);
    },
    stop: () => stopAll([...sentinels, ...nodes]),
  };
}

async function masterBy({ url }: RedisServer): Promise<number | undefined> {
  // One that is down has no say.
  const answer = await askServer(url, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME).catch(() => null);
  return Array.isArray(answer) ? Number(answer[1]) : undefined;
}

async function viewOf({ url }: RedisServer) {
  const fields = (await askServer(url, 'SENTINEL', 'MASTER', NAME)) as string[];
  const field = (name: string) => fields[fields.indexOf(name) + 1];
  return {
    port: Number(field('port')),
    flags: field('flags'),
    replicas: Number(field('num-slaves')),
    sentinels: Number(field('num-other-sentinels')),
  };
}

async function playsItsPart({ url, port }: RedisServer, master: number): Promise<boolean> {
  const info = String(await askServer(url, 'INFO', 'replication'));
  if (port === master) return info.includes('role:master') && info.match(/state=online/g)?.length === 2;
  return info.includes(`master_port:${master}\r`) && info.includes('master_link_status:up');
}
