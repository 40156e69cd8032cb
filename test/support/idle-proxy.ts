import { once } from 'node:events';
import net from 'node:net';

/** What a way through the network does with a connection on which nothing was said for a while. */
export type IdleEnd =
  /** Both sides get a reset, as from a load balancer. */
  | 'reset'
  /** Nobody is told, and nothing passes any more, as behind a NAT that has forgotten it. */
  | 'forgotten';

export interface IdleProxy extends AsyncDisposable {
  readonly url: string;
  /** Connections that were ended. */
  readonly ended: number;
}

/** Leads to the server at `url`, and ends connections on which nothing was said for `idle` ms. */
export async function idleProxy(url: string, idle: number, how: IdleEnd): Promise<IdleProxy> {
  const target = new URL(url);
  const sockets = new Set<net.Socket>();
  let ended = 0;
  const listener = net.createServer({ noDelay: true }, (client) => {
    const server = net.connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    const forget = () => {
      ended++;
      for (const socket of [client, server]) {
        if (how === 'reset') socket.resetAndDestroy();
        else socket.unpipe().removeAllListeners('close').resume();
      }
    };
    const timer = setTimeout(forget, idle);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('data', () => timer.refresh());
      from.on('close', () => {
        clearTimeout(timer);
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const proxied = new URL(url);
  proxied.host = `127.0.0.1:${(listener.address() as net.AddressInfo).port}`;
  return {
    url: proxied.href,
    get ended() {
      return ended;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
