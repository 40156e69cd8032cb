// The network between callers and servers, in a process of its own: what it does must not cost the callers' time.
import { startFaultProxy } from '../../test/support/fault-proxy.js';
import type { Site } from '../house.js';
import { serve } from './serve.js';

const near = JSON.parse(process.argv[2] as string) as Site;

const verbs = {
  /** The same servers, `ms` further away in one direction. */
  async far({ ms }: { readonly ms: number }): Promise<Site> {
    const far = async (url: string) => {
      const { hostname, port } = new URL(url);
      const line = await startFaultProxy({ host: hostname, port: Number(port) });
      line.latency(ms, 'toServer');
      return line.url(url);
    };
    return { plain: await far(near.plain), guarded: await far(near.guarded), redis: await far(near.redis) };
  },
};

export type DistanceVerbs = typeof verbs;
serve(verbs);
