import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Redis } from 'ioredis';
import { connectTo } from './redis-site.js';
import { askServer, type FailoverGroup } from './servers/index.js';

/** For how long nothing got done, at the longest; milliseconds. */
export class Gaps {
  #done = 0;
  #last = performance.now();
  #longest = 0;

  did(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
    this.#done++;
  }

  get done(): number {
    return this.#done;
  }

  get longest(): number {
    return Math.max(this.#longest, performance.now() - this.#last);
  }
}

export interface Writers {
  /** Past every client: when any node takes a write of the name. */
  readonly servers: Gaps;
  /** An ordinary client with the settings that the docs recommend. */
  readonly client: Gaps;
  stop(): Promise<void>;
}

/** Two that write the name all the time: for how long could nobody, and for how long could a client not? */
export function startWriters({ site, nodes }: FailoverGroup, name: string): Writers {
  const [servers, client] = [new Gaps(), new Gaps()];
  const { redis, close } = connectTo(site);
  let over = false;
  const write = async () => {
    while (!over) {
      await (redis as Redis | Cluster).set(name, '').then(
        () => client.did(),
        () => {},
      );
      await sleep(5);
    }
  };
  const ask = async () => {
    while (!over) {
      // Replicas and nodes without the slot refuse; one that is gone or frozen says nothing.
      await Promise.any(nodes.map(({ url }) => askServer(url, 'SET', name, ''))).then(
        () => servers.did(),
        () => {},
      );
      await sleep(20);
    }
  };
  const stopped = Promise.all([write(), ask()]);
  return {
    servers,
    client,
    async stop() {
      over = true;
      close();
      await stopped;
    },
  };
}
