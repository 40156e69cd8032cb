import { type FaultProxy, startFaultProxy } from '../fault-proxy.js';
import type { Address, RedisSite } from '../redis-site.js';
import type { RedisGroup } from '../servers/index.js';
import type { Site } from './messages.js';

/** Where an actor's servers are, past its lines. */
export interface Servers {
  readonly databaseUrl: string;
  /** Missing where leases are in the memory of the process. */
  readonly group: RedisGroup | undefined;
}

/** The lines of one worker to its servers, each to be hurt alone. */
export class Lines {
  static async open({ databaseUrl, group }: Servers): Promise<Lines> {
    const toNodes = new Map<string, FaultProxy>();
    for (const node of group?.nodes ?? []) toNodes.set(nameOf(node), await startFaultProxy(node));
    const site = group?.site;
    const wakeUps = site?.kind === 'single' ? await startFaultProxy(target(site.url)) : undefined;
    return new Lines(databaseUrl, site ?? 'memory', await startFaultProxy(target(databaseUrl)), toNodes, wakeUps);
  }

  readonly #databaseUrl: string;
  readonly #redis: RedisSite | 'memory';
  readonly #toNodes: ReadonlyMap<string, FaultProxy>;
  readonly #wakeUps: FaultProxy | undefined;

  private constructor(
    databaseUrl: string,
    redis: RedisSite | 'memory',
    readonly postgres: FaultProxy,
    toNodes: ReadonlyMap<string, FaultProxy>,
    wakeUps: FaultProxy | undefined,
  ) {
    this.#databaseUrl = databaseUrl;
    this.#redis = redis;
    this.#toNodes = toNodes;
    this.#wakeUps = wakeUps;
  }

  /** Where there is one Redis, wake-ups have a line of their own. */
  get wakeUps(): FaultProxy {
    if (this.#wakeUps === undefined) throw new Error('wake-ups come over the lines to the nodes');
    return this.#wakeUps;
  }

  get commands(): FaultProxy {
    const [line, ...others] = this.#toNodes.values();
    if (line === undefined || others.length > 0) throw new Error('there is a line to each node');
    return line;
  }

  toNode(node: Address): FaultProxy {
    const line = this.#toNodes.get(nameOf(node));
    if (line === undefined) throw new Error(`no line leads to ${nameOf(node)}`);
    return line;
  }

  /** The servers as they are seen through the lines. */
  site(applicationName: string): Site {
    const database = new URL(this.postgres.url(this.#databaseUrl));
    database.searchParams.set('application_name', applicationName);
    const redis = this.#redis;
    const wakeUpsUrl = redis !== 'memory' && redis.kind === 'single' ? this.wakeUps.url(redis.url) : undefined;
    return { databaseUrl: database.href, redis: this.#through(), ...(wakeUpsUrl !== undefined && { wakeUpsUrl }) };
  }

  async close(): Promise<void> {
    const all = [this.postgres, ...this.#toNodes.values(), ...(this.#wakeUps ? [this.#wakeUps] : [])];
    await Promise.all(all.map((line) => line.close()));
  }

  #through(): RedisSite | 'memory' {
    const site = this.#redis;
    if (site === 'memory') return site;
    switch (site.kind) {
      case 'single':
        return { ...site, url: this.commands.url(site.url) };
      case 'quorum':
        return { ...site, urls: site.urls.map((url) => this.toNode(target(url)).url(url)) };
      case 'sentinel':
        return { ...site, natMap: this.#natMap() };
      case 'cluster':
        return { ...site, nodes: site.nodes.map((node) => address(this.toNode(node))), natMap: this.#natMap() };
    }
  }

  #natMap() {
    return Object.fromEntries([...this.#toNodes].map(([name, line]) => [name, address(line)]));
  }
}

function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

function address({ host, port }: Address): Address {
  return { host, port };
}

function target(url: string): Address {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}
